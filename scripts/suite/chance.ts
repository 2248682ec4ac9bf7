import { DAY_MS } from '../../shared/time.js';
import type { Phase, TestFile } from './phases.js';

/** A test file that was red beside the others, and green alone. */
export interface Chance {
  file: string;
  tests: string[];
  commit: string;
  /** UTC, YYYY-MM-DD. */
  date: string;
  output: string;
}

/** Only these meet deadlines of real programs. All others repeat exactly, so a second run could only hide what they found. */
const PHASES: readonly string[] = ['docker', 'docker-alone', 'browser', 'sweeps'];
/** Money, workloads and disks: what was wrong once was wrong. */
const NEVER_AGAIN = /(metering|crash|trouble|restore|docker-restart|disk|kill|escape|userns)[^/]*\.test\.ts$/;
/** The same in any file, by what a failed test says. */
const WORDS = /invariant|charged|balance|_micro\b|lost (workload|disk|instance)/i;
const DAYS = 30;
const MOST_OUTPUT = 2_000;

/**
 * Returns the files to run once more, alone, or the reason for not doing so: something failed that must not fail even once, or a
 * phase failed without saying which test.
 */
export function toRunAgain(
  phases: readonly Phase[],
  files: readonly TestFile[],
): { again: TestFile[] } | { reason: string } {
  const red = files.filter(({ failed }) => failed.length > 0);
  for (const { name } of phases.filter(({ hasFailed }) => hasFailed)) {
    if (!PHASES.includes(name)) return { reason: `${name} has failed, and never gets a second run` };
    if (!red.some(({ phase }) => phase === name)) return { reason: `${name} has failed outside of its tests` };
  }
  for (const { path, failed } of red) {
    if (NEVER_AGAIN.test(path)) return { reason: `${path} has failed, and never gets a second run` };
    const wrong = failed.find(({ messages }) => messages.some((message) => WORDS.test(message)));
    if (wrong)
      return { reason: `“${wrong.title}” tells of money, an invariant or a loss, and never gets a second run` };
  }
  return { again: red };
}

/** Returns what the list says of a file that was red and, alone, green. */
export function chanceOf({ path, failed }: TestFile, commit: string, at: Date): Chance {
  const output = failed.flatMap(({ messages }) => messages).join('\n');
  return {
    file: path,
    tests: failed.map(({ title }) => title),
    commit,
    date: at.toISOString().slice(0, 10),
    output: output.slice(0, MOST_OUTPUT),
  };
}

/** Returns the files that are listed twice within 30 days: each is an open fault, until it is mended and its lines are removed. */
export function openFaults(list: readonly Chance[]): string[] {
  const byFile = new Map<string, Chance[]>();
  for (const one of list) byFile.set(one.file, [...(byFile.get(one.file) ?? []), one]);
  return [...byFile].filter(([, chances]) => areClose(chances)).map(([file]) => file);
}

function areClose(chances: readonly Chance[]): boolean {
  const times = chances.map(({ date }) => Date.parse(date)).sort((one, other) => one - other);
  return times.some((time, index) => index > 0 && time - (times[index - 1] ?? -Infinity) <= DAYS * DAY_MS);
}
