import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { chanceOf, openFaults, toRunAgain, type Chance } from './chance.js';
import { phasesIn, testFilesIn, type TestFile } from './phases.js';

/** The list of the repository: whoever runs the tests commits it. */
const LIST = 'test/chance.jsonl';
const AGAIN = 'again-';

const [act, folder = ''] = process.argv.slice(2);
const red = () =>
  testFilesIn(folder)
    .filter(({ phase, failed }) => failed.length > 0 && !phase.startsWith(AGAIN))
    .map((file) => ({ ...file, path: relative(process.cwd(), file.path) }));

/** Prints PROJECT FILE of each file that gets a second run; fails, and says why, if there is none. */
function list(): void {
  const answer = toRunAgain(phasesIn(folder), red());
  if ('reason' in answer) {
    process.stderr.write(`no second run: ${answer.reason}\n`);
    process.exitCode = 1;
  } else {
    for (const { phase, path } of answer.again) process.stdout.write(`${phase} ${path}\n`);
  }
}

/** Writes down each file that was red only once. Fails if one was red again, or is listed twice within 30 days. */
function record(): void {
  const again = testFilesIn(folder).filter(({ phase }) => phase.startsWith(AGAIN));
  const isGreen = ({ path }: TestFile) =>
    again.some((other) => relative(process.cwd(), other.path) === path && other.failed.length === 0);
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  for (const file of red()) {
    if (isGreen(file)) write(chanceOf(file, commit, new Date()));
    else {
      process.stderr.write(`${file.path}: red once more, alone\n`);
      process.exitCode = 1;
    }
  }
}

function write(chance: Chance): void {
  const line = JSON.stringify(chance);
  appendFileSync(LIST, `${line}\n`);
  process.stderr.write(
    `CHANCE: ${chance.file} was red, and green alone. Commit the line that ${LIST} has for it now:\n${line}\n`,
  );
}

/** Fails if a file is listed twice within 30 days. */
function check(): void {
  const lines = readFileSync(LIST, 'utf8').split('\n');
  for (const file of openFaults(lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Chance))) {
    process.stderr.write(
      `${file} is listed twice within 30 days: an open fault. Mend it, and remove its lines from ${LIST}\n`,
    );
    process.exitCode = 1;
  }
}

if (act === 'list') list();
else if (act === 'record') record();
else if (act === 'check') check();
else throw new Error('usage: second-run list|record|check FOLDER');
