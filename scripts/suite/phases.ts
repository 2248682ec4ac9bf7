import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export interface Phase {
  name: string;
  wallS: number;
  processorS: number;
  hasFailed: boolean;
}

export interface FailedTest {
  title: string;
  messages: string[];
}

export interface TestFile {
  phase: string;
  path: string;
  seconds: number;
  failed: FailedTest[];
}

interface VitestReport {
  testResults: {
    name: string;
    status: string;
    message: string;
    startTime: number;
    endTime: number;
    assertionResults: { status: string; fullName: string; failureMessages: string[] | null }[];
  }[];
}

const linesOf = (file: string) =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];

/** Reads the phases that have ended, from the folder that scripts/lib/phases.sh writes. One that has run several times is one. */
export function phasesIn(folder: string): Phase[] {
  const phases = new Map<string, Phase>();
  for (const line of linesOf(join(folder, 'times'))) {
    const [name = '', wall, processor, status] = line.split(' ');
    const earlier = phases.get(name) ?? { name, wallS: 0, processorS: 0, hasFailed: false };
    phases.set(name, {
      name,
      wallS: earlier.wallS + Number(wall),
      processorS: earlier.processorS + Number(processor),
      hasFailed: earlier.hasFailed || status !== '0',
    });
  }
  return [...phases.values()];
}

/** Reads what was not run, one line each, with the reason. */
export const notRunIn = (folder: string): string[] => linesOf(join(folder, 'not-run'));

/** Reads the factor of this machine: the median of what was measured, or undefined where the run ended before that. */
export function factorIn(folder: string): number | undefined {
  const factors = linesOf(join(folder, 'factors')).map(Number);
  return factors.sort((one, other) => one - other)[Math.floor(factors.length / 2)];
}

/** Reads the files of all tests that have run. */
export function testFilesIn(folder: string): TestFile[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => {
      const { testResults } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as VitestReport;
      return testResults.map((result) => ({
        phase: file.slice(0, -'.json'.length),
        path: result.name,
        seconds: (result.endTime - result.startTime) / 1_000,
        failed: failedIn(result),
      }));
    });
}

function failedIn({ status, message, assertionResults }: VitestReport['testResults'][number]): FailedTest[] {
  const failed = assertionResults
    .filter((each) => each.status === 'failed')
    .map(({ fullName, failureMessages }) => ({ title: fullName.trim(), messages: failureMessages ?? [] }));
  // A file that fails outside of its tests, for example in beforeAll.
  return status === 'failed' && failed.length === 0 ? [{ title: 'the file itself', messages: [message] }] : failed;
}
