import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const REPORT = '.mutants.json';

interface Report {
  numTotalTests: number;
  testResults: { status: string; message: string; assertionResults: { status: string; fullName: string }[] }[];
}

export interface TestRun {
  /** How many tests there were; 0 where they could not be run or took too long. */
  total: number;
  /** The names of those that failed. */
  failed: string[];
  /** What could not even be loaded: a fault that is none of the tests'. */
  broken: string[];
}

/** Runs test files of the quick project in `folder`, for at most `limitMs` milliseconds. */
export async function runTests(folder: string, files: readonly string[], limitMs: number): Promise<TestRun> {
  const report = join(folder, REPORT);
  rmSync(report, { force: true });
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', 'quick', '--reporter=json', `--outputFile=${report}`, ...files];
  // A process group of its own: its workers end with it.
  const child = spawn(process.execPath, args, { cwd: folder, stdio: 'ignore', detached: true });
  const end = () => kill(child.pid);
  const timer = setTimeout(end, limitMs);
  // Before what removes the folder that they work in.
  process.prependOnceListener('exit', end);
  await once(child, 'exit');
  process.off('exit', end);
  clearTimeout(timer);
  return read(report);
}

function kill(group: number | undefined): void {
  if (group === undefined) return;
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function read(report: string): TestRun {
  let said: Report;
  try {
    said = JSON.parse(readFileSync(report, 'utf8')) as Report;
  } catch {
    return { total: 0, failed: [], broken: ['the tests ended without a report, or took too long'] };
  }
  const failed = said.testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  );
  const broken = said.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  );
  return { total: said.numTotalTests, failed, broken: broken.map(({ message }) => message) };
}
