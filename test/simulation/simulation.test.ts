import { describe, expect, it } from 'vitest';
import { KEPT_SEEDS } from './kept-seeds.js';
import { simulate } from './run.js';

it('a seed repeats itself bit for bit, and another does not', async () => {
  const [once, again, other] = [await simulate(7, 150), await simulate(7, 150), await simulate(8, 150)];
  expect(once.failure).toBeUndefined();
  expect(again.digest).toBe(once.digest);
  expect(again.counts).toEqual(once.counts);
  expect(other.digest).not.toBe(once.digest);
});

describe('a seed that once failed holds:', () => {
  const isNight = process.env['TEST_ALL_SEEDS'] !== undefined;
  const tried = KEPT_SEEDS.filter(({ onlyAtNight = false }) => isNight || !onlyAtNight);

  it.each(tried)('$seed, for $steps steps: $found', async ({ seed, steps }) => {
    expect((await simulate(seed, steps)).failure).toBeUndefined();
  });
});
