import { readFileSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { relative } from 'node:path';
import { MINUTES, MOST_OF_BUDGET, PROCESSOR_S } from './budget.js';
import { factorIn, notRunIn, phasesIn, testFilesIn, type Phase } from './phases.js';

const SLOWEST = 15;
const GUIDE = 'docs/dev/testing.md';
const PLACE = /(<!-- times of a run, written by scripts\/test --record -->\n)[^]*?(<!-- end -->)/;

const [folder = '', mode = '', tookS = '0', totalS = '0', record] = process.argv.slice(2);
const phases = phasesIn(folder);
const factor = factorIn(folder);
const notRun = notRunIn(folder);

const print = (text: string) => process.stdout.write(`${text}\n`);
const minutes = (seconds: number) => {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
};

/** What a phase may take here, in processor seconds. */
const budgetOf = ({ name }: Phase) => (PROCESSOR_S[name] ?? 0) * (factor ?? 1);
const sum = (numbers: number[]) => numbers.reduce((one, other) => one + other, 0);
/** All that was computed for the run, also between phases: starting engines, importing images. */
const computedS = Math.max(Number(totalS), sum(phases.map(({ processorS }) => processorS)));
const budgetS = sum(phases.map(budgetOf));

function rows(): string[][] {
  const times = phases.map((phase) => [
    phase.name,
    minutes(phase.wallS),
    phase.processorS.toFixed(0),
    budgetOf(phase).toFixed(0),
  ]);
  return [...times, ['all', minutes(Number(tookS)), computedS.toFixed(0), budgetS.toFixed(0)]];
}

function printTable(): void {
  print('\nphase                 time  processor s  budget');
  for (const [name = '', wall = '', processor = '', budget = ''] of rows())
    print(`${name.padEnd(18)} ${wall.padStart(7)} ${processor.padStart(12)} ${budget.padStart(7)}`);
  for (const line of notRun) print(`not run: ${line}`);
}

function printSlowest(): void {
  const files = testFilesIn(folder).sort((one, other) => other.seconds - one.seconds);
  print('\nslowest files');
  for (const { path, seconds } of files.slice(0, SLOWEST))
    print(`${minutes(seconds).padStart(7)}  ${relative(process.cwd(), path)}`);
}

function goalOf(): number {
  if (mode === 'quick') return MINUTES.quick;
  if (phases.some(({ name, wallS }) => name === 'image-debian' && wallS > 20)) return MINUTES.nothing;
  return notRun.length > 0 ? MINUTES.changed : MINUTES.kept;
}

/** Prints how the run compares with its budget. In CI, a run that computes far more than that fails. */
function judge(): void {
  if (factor === undefined) return;
  print(`\nmachine ${factor.toFixed(2)} of the reference: all budgets are for it`);
  print(`total time ${minutes(Number(tookS))}, goal ${minutes(60 * goalOf() * factor)}`);
  if (mode === 'nightly') return;
  print(`processor ${computedS.toFixed(0)} s, budget ${budgetS.toFixed(0)} s`);
  if (computedS <= MOST_OF_BUDGET * budgetS) return;
  print(`OVER BUDGET: more than ${MOST_OF_BUDGET} times as much as may be computed (docs/dev/testing.md)`);
  if (process.env['CI'] !== undefined) process.exitCode = 1;
}

/** Writes the times into the guide. */
function writeTable(): void {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const head = [
    `At ${commit}, on a machine of factor ${factor?.toFixed(2)}. The budgets are for that machine.`,
    '',
    '| phase | time | processor seconds | budget |',
    '|---|---|---|---|',
  ];
  const lines = [...head, ...rows().map((row) => `| ${row.join(' | ')} |`), ''];
  if (notRun.length > 0) lines.push(...notRun.map((line) => `Not run: ${line}.`), '');
  const guide = readFileSync(GUIDE, 'utf8');
  if (!PLACE.test(guide)) throw new Error(`${GUIDE} has no place for the times`);
  writeFileSync(
    GUIDE,
    guide.replace(PLACE, (_, before, after) => `${before}${lines.join('\n')}${after}`),
  );
}

printTable();
printSlowest();
judge();
if (record !== undefined && record !== '') writeTable();
