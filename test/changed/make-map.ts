import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { startVitest } from 'vitest/node';
import { buildMap } from './build-map.js';
import { ancestors, changedSince, filesOfTree } from './repository.js';
import type { TestRecord } from './record.js';
import { writeMap } from './test-map.js';

const OPTIONS = { config: 'test/changed/recording.config.js', root: process.cwd(), run: true, watch: false };

/** Runs the quick tests, and returns what each file ran that passed, and the names of the others. */
async function record(filters: string[], folder: string): Promise<[TestRecord[], unrecorded: string[]]> {
  process.env['TEST_RECORDS'] = folder;
  const vitest = await startVitest('test', filters, OPTIONS);
  const files = vitest.state.getTestModules();
  const nameOf = (path: string) => relative(process.cwd(), path);
  const green = new Set(files.filter((file) => file.ok()).map(({ moduleId }) => nameOf(moduleId)));
  await vitest.close();
  const records = readdirSync(folder)
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as TestRecord)
    .filter(({ test }) => green.has(test));
  const recorded = new Set(records.map(({ test }) => test));
  return [records, files.map(({ moduleId }) => nameOf(moduleId)).filter((test) => !recorded.has(test))];
}

// The commit as it is now: the tests take minutes.
const [commit = ''] = ancestors();
const uncommitted = changedSince(commit);
const files = filesOfTree();
const folder = mkdtempSync(join(tmpdir(), 'gpurent-test-records-'));
try {
  const [records, unrecorded] = await record(process.argv.slice(3), folder);
  const written = writeMap(buildMap({ commit, uncommitted, unrecorded }, records, files));
  process.stdout.write(`${written}: ${records.length} test files, ${unrecorded.length} without a record\n`);
} finally {
  rmSync(folder, { recursive: true });
}
