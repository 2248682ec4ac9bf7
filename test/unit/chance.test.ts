import { describe, expect, it } from 'vitest';
import { chanceOf, openFaults, toRunAgain } from '../../scripts/suite/chance.js';
import type { Phase, TestFile } from '../../scripts/suite/phases.js';

const failedPhase = (name: string): Phase => ({ name, wallS: 1, processorS: 1, hasFailed: true });
const redFile = (phase: string, path: string, message = 'gave up waiting for SSH'): TestFile => ({
  phase,
  path,
  seconds: 1,
  failed: [{ title: 'a test', messages: [message] }],
});
const DOCKER = redFile('docker', 'test/e2e/rent.test.ts');

describe('a second run', () => {
  it('is for red files of Docker and the browser', () => {
    const browser = redFile('browser', 'test/browser/device.test.ts');
    const green = { ...DOCKER, path: 'test/e2e/ssh.test.ts', failed: [] };
    expect(toRunAgain([failedPhase('docker'), failedPhase('browser')], [DOCKER, browser, green])).toEqual({
      again: [DOCKER, browser],
    });
  });

  it.each(['quick', 'simulation', 'steps', 'deep', 'load', 'check', 'vm', 'machine'])('is not for %s', (name) => {
    expect(toRunAgain([failedPhase('docker'), failedPhase(name)], [DOCKER])).toEqual({
      reason: `${name} has failed, and never gets a second run`,
    });
  });

  it.each(['metering', 'crash', 'trouble', 'restore', 'docker-restart', 'full-disk'])(
    'is not for %s, which tells of money or of what a workload loses',
    (name) => {
      const path = `test/e2e/${name}.test.ts`;
      expect(toRunAgain([failedPhase('docker')], [redFile('docker', path)])).toEqual({
        reason: `${path} has failed, and never gets a second run`,
      });
    },
  );

  it.each(['expected balance_micro to be 5', 'charged 3, not 2', 'the invariant is broken', 'lost workload a'])(
    'is not where a test says “%s”',
    (message) => {
      const answer = toRunAgain([failedPhase('browser')], [redFile('browser', 'test/browser/device.test.ts', message)]);
      expect(answer).toEqual({
        reason: '“a test” tells of money, an invariant or a loss, and never gets a second run',
      });
    },
  );

  it('is not where a phase has failed outside of its tests', () => {
    expect(toRunAgain([failedPhase('docker')], [])).toEqual({ reason: 'docker has failed outside of its tests' });
  });
});

it('what was red once is listed with its commit, day, tests and output, which is bounded', () => {
  const file = redFile('docker', 'test/e2e/rent.test.ts', 'x'.repeat(10_000));
  expect(chanceOf(file, 'abc1234', new Date('2026-01-15T12:00:00.000Z'))).toEqual({
    file: 'test/e2e/rent.test.ts',
    tests: ['a test'],
    commit: 'abc1234',
    date: '2026-01-15',
    output: 'x'.repeat(2_000),
  });
});

describe('a file that is listed twice', () => {
  const on = (date: string, file = 'a') => ({ ...chanceOf(DOCKER, 'abc1234', new Date(`${date}T12:00:00Z`)), file });

  it.each([
    ['within 30 days is an open fault', ['2026-01-01', '2026-01-31'], ['a']],
    ['on one day is an open fault', ['2026-01-01', '2026-01-01'], ['a']],
    ['in 31 days is none', ['2026-01-01', '2026-02-01'], []],
    ['of three times, the last two count as well', ['2026-01-01', '2026-04-01', '2026-04-20'], ['a']],
  ])('%s', (_, dates, faults) => {
    expect(openFaults(dates.map((date) => on(date)))).toEqual(faults);
  });

  it('is one file: two files once each are no open fault', () => {
    expect(openFaults([on('2026-01-01', 'a'), on('2026-01-01', 'b')])).toEqual([]);
  });
});
