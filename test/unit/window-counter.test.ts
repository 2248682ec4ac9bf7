import { expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { WindowCounter } from '../../control-plane/http/limits/window-counter.js';
import { ManualClock } from '../harness/manual-clock.js';

it('a window begins with the first event of its key, and says when it ends', () => {
  const clock = new ManualClock();
  const counter = new WindowCounter(clock, MINUTE_MS, 2);
  expect([counter.count('a'), counter.count('a')]).toEqual([0, 0]);
  clock.advance(15_000);
  expect([counter.count('a'), counter.count('b')]).toEqual([45, 0]);
  clock.advance(45_000);
  expect(counter.count('a')).toBe(0);
});

it('of more than 20,000 keys, those seen longest ago are forgotten', () => {
  const counter = new WindowCounter(new ManualClock(), MINUTE_MS, 1);
  counter.count('first');
  for (let key = 1; key < 20_000; key++) counter.count(`${key}`);
  expect([counter.count('first'), counter.count('1')]).toEqual([60, 60]);
  counter.count('one more');
  expect([counter.count('first'), counter.count('2')]).toEqual([60, 0]);
});
