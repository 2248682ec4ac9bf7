import { existsSync, readFileSync, statSync } from 'node:fs';
import { Command } from 'commander';
import { isSource } from './build-map.js';
import { choose, isTest, type Change, type Choice } from './choose.js';
import { readSource } from './read-source.js';
import { ancestors, changedSince } from './repository.js';
import { findMap, type TestMap } from './test-map.js';

const SHOWN_PARTS = 4;

interface Options {
  list?: boolean;
}

const program = new Command('test:changed')
  .description('Runs the quick tests that the changes of the working tree can break.')
  .option('--list', 'only print them')
  .action(async ({ list = false }: Options) => {
    const map = findMap(ancestors());
    if (map) await runChosen(map, list);
    else await runByImports(list);
  });

async function runByImports(list: boolean): Promise<void> {
  say(
    'No map says what each test runs: "npm run test:map" makes one, in some minutes. These are all tests that import a changed file.',
  );
  if (list) process.exitCode = 1;
  else await run([], { changed: true });
}

async function runChosen(map: TestMap, list: boolean): Promise<void> {
  const files = new Set([...map.uncommitted, ...changedSince(map.commit)]);
  const choices = choose(map, [...files].sort().map(read));
  for (const choice of choices) say(describe(choice));
  const tests = new Set(
    [...map.unrecorded, ...choices.flatMap((choice) => choice.tests)].filter((test) => existsSync(test)),
  );
  const byProgram = new Set(choices.flatMap((choice) => choice.byProgram).filter((test) => !tests.has(test)));
  if (byProgram.size > 0) {
    if (isBuilt([...files])) for (const test of byProgram) tests.add(test);
    else
      say(`Left out, because they run programs of dist, which is older (npm run build): ${[...byProgram].join(', ')}`);
  }
  const chosen = [...tests].sort();
  if (map.unrecorded.length > 0) say(`Without a record, so always chosen: ${map.unrecorded.join(', ')}`);
  say(`${chosen.length} of ${map.tests.length + map.unrecorded.length} test files`);
  if (list) process.stdout.write(chosen.map((test) => `${test}\n`).join(''));
  else if (chosen.length > 0) await run(chosen, {});
}

function read(file: string): Change {
  const isGone = !existsSync(file);
  if (isGone || !isSource(file) || isTest(file)) return { file, isGone };
  return { file, isGone, source: readSource(file, readFileSync(file, 'utf8')).source };
}

function describe({ file, why, tests, byProgram }: Choice): string {
  const parts = why.split(', ');
  const more = parts.length > SHOWN_PARTS ? ` and ${parts.length - SHOWN_PARTS} more` : '';
  const what = why === '' ? '' : ` (${parts.slice(0, SHOWN_PARTS).join(', ')}${more})`;
  return `${file}${what}: ${tests.length + byProgram.length}`;
}

/** Whether the programs in dist are newer than the changed files. */
function isBuilt(files: readonly string[]): boolean {
  return files.every((file) => {
    const built = `dist/${file.replace(/\.tsx?$/, '.js')}`;
    if (!isSource(file) || !existsSync(file) || !existsSync(built)) return true;
    return statSync(built).mtimeMs >= statSync(file).mtimeMs;
  });
}

async function run(files: string[], options: { changed?: boolean }): Promise<void> {
  // It takes longer to load than the choice takes.
  const { startVitest } = await import('vitest/node');
  const vitest = await startVitest('test', files, {
    ...options,
    project: 'quick',
    run: true,
    watch: false,
    passWithNoTests: true,
  });
  await vitest.close();
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

await program.parseAsync(process.argv.slice(3), { from: 'user' });
