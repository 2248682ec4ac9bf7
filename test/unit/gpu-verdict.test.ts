import { expect, it } from 'vitest';
import {
  UNTESTED,
  judgeGpuTest,
  nextGpuTestMs,
  notTested,
  type GpuTestResult,
} from '../../agent/domain/gpu-verdict.js';

const RESULTS: Record<string, GpuTestResult> = {
  bad: { kind: 'failed', reason: 'the hook refuses' },
  well: { kind: 'passed', reason: '' },
  none: notTested('no GPU is free'),
};
const NOW = 1_000_000;

/** Tests at minutes, and the verdict after each. The minute 90 stands for a time after the hour that a change keeps. */
it.each<[string, [minute: number, result: string, is: 'down' | 'up'][]]>([
  ['one failure is none', [[0, 'bad', 'up']]],
  [
    'two failures a minute apart are a fault',
    [
      [0, 'bad', 'up'],
      [1, 'bad', 'down'],
    ],
  ],
  [
    'two failures at once are not',
    [
      [0, 'bad', 'up'],
      [0.9, 'bad', 'up'],
      [1, 'bad', 'down'],
    ],
  ],
  [
    'a success between ends the doubt',
    [
      [0, 'bad', 'up'],
      [1, 'well', 'up'],
      [2, 'bad', 'up'],
      [3, 'bad', 'down'],
    ],
  ],
  [
    'what was not tested changes nothing',
    [
      [0, 'bad', 'up'],
      [1, 'none', 'up'],
      [2, 'bad', 'down'],
      [3, 'none', 'down'],
    ],
  ],
  [
    'an old failure does not count',
    [
      [0, 'bad', 'up'],
      [61, 'bad', 'up'],
      [62, 'bad', 'down'],
    ],
  ],
  [
    'two successes end a fault',
    [
      [0, 'bad', 'up'],
      [1, 'bad', 'down'],
      [2, 'well', 'down'],
      [2, 'well', 'up'],
    ],
  ],
  [
    'a failure between keeps it',
    [
      [0, 'bad', 'up'],
      [1, 'bad', 'down'],
      [2, 'well', 'down'],
      [3, 'bad', 'down'],
      [4, 'well', 'down'],
      [5, 'well', 'up'],
    ],
  ],
  [
    'a second fault waits for an hour after the first',
    [
      [0, 'bad', 'up'],
      [1, 'bad', 'down'],
      [2, 'well', 'down'],
      [3, 'well', 'up'],
      [4, 'bad', 'up'],
      [60, 'bad', 'up'],
      [61, 'bad', 'down'],
    ],
  ],
  [
    'a second end waits for an hour after the first',
    [
      [0, 'bad', 'up'],
      [1, 'bad', 'down'],
      [2, 'well', 'down'],
      [3, 'well', 'up'],
      [61, 'bad', 'up'],
      [62, 'bad', 'down'],
      [62.5, 'well', 'down'],
      [62.9, 'well', 'down'],
      [63, 'well', 'up'],
    ],
  ],
])('%s', (_, steps) => {
  let verdict = UNTESTED;
  const seen = steps.map(([minute, result]) => {
    const test = RESULTS[result];
    if (!test) throw new Error('there is no such result');
    verdict = judgeGpuTest(verdict, test, NOW + minute * 60_000);
    return [minute, result, verdict.fault === '' ? 'up' : 'down'];
  });
  expect(seen).toEqual(steps);
});

it('a clock that was ahead keeps no verdict', () => {
  const ahead = { ...UNTESTED, downAt: NOW + 1e9, doubtedAt: NOW - 60_000 };
  expect(judgeGpuTest(ahead, { kind: 'failed', reason: 'x' }, NOW).fault).toBe('x');
  expect(judgeGpuTest({ ...UNTESTED, doubtedAt: NOW + 1e9 }, { kind: 'failed', reason: 'x' }, NOW)).toMatchObject({
    fault: '',
    doubtedAt: NOW,
  });
});

it('a host without a doubt and without a fault is not tested again', () => {
  const minutes = (fields: object) => {
    const ms = nextGpuTestMs({ ...UNTESTED, ...fields }, NOW);
    return ms === null ? null : ms / 60_000;
  };
  expect(minutes({})).toBe(null);
  expect(minutes({ doubtedAt: NOW })).toBe(1);
  expect(minutes({ fault: 'x', downAt: NOW })).toBe(60);
  expect(minutes({ doubtedAt: NOW, downAt: NOW - 20 * 60_000 })).toBe(40);
  expect(minutes({ fault: 'x', doubtedAt: NOW, upAt: NOW - 50 * 60_000 })).toBe(10);
});
