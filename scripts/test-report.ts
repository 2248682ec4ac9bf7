import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

/** The time budget of all tests, in seconds, on two cores. docs/dev/testing.md has it, too. */
const BUDGET_S: Record<string, number> = { '': 30 * 60, quick: 4 * 60 };
const SLOWEST = 15;

interface VitestReport {
  testResults: { name: string; startTime: number; endTime: number }[];
}

function minutes(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`.padStart(6);
}

const [folder = '', mode = '', tookS = '0'] = process.argv.slice(2);

function phases(): [name: string, seconds: number, computed: number][] {
  const lines = readFileSync(join(folder, 'times'), 'utf8').trim().split('\n');
  return lines.map((line) => {
    const [name = '', seconds, computed] = line.split(' ');
    return [name, Number(seconds), Number(computed)];
  });
}

function slowestFiles(): [name: string, seconds: number][] {
  const reports = readdirSync(folder).filter((file) => file.endsWith('.json'));
  const files = reports.flatMap((file) => {
    const { testResults } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as VitestReport;
    return testResults.map(({ name, startTime, endTime }): [string, number] => [
      relative(process.cwd(), name),
      (endTime - startTime) / 1_000,
    ]);
  });
  return files.sort(([, one], [, other]) => other - one).slice(0, SLOWEST);
}

function print(title: string, rows: [name: string, ...seconds: number[]][]): void {
  process.stdout.write(`\n${title}\n`);
  for (const [name, ...seconds] of rows) process.stdout.write(`${seconds.map(minutes).join(' ')}  ${name}\n`);
}

print('phases, some of which run in parallel: time, and time of processors without containers', phases());
print('slowest files', slowestFiles());
const budget = BUDGET_S[mode];
const against =
  budget === undefined ? '' : `, ${Number(tookS) > budget ? 'over' : 'within'} the budget of${minutes(budget)}`;
process.stdout.write(`\ntotal time${minutes(Number(tookS))}${against}\n`);
