import { describe, expect, it } from 'vitest';
import { MOMENTS, type Moment } from './fate.js';
import { SCENARIOS } from './scenarios.js';
import { step } from './steps.js';

/** Every how manieth of the moments that are many is tried; 1 is all of them. */
const STRIDE = Number(process.env['GPURENT_TEST_STRIDE'] ?? 12);
const MANY: readonly Moment[] = ['before a commit', 'after a commit', 'a message is lost', 'a message comes twice'];

describe('whatever goes wrong once, and wherever, nothing is lost and everything settles:', () => {
  it.each(SCENARIOS)('$name', { timeout: 1_200_000 }, async (scenario) => {
    const failures: string[] = [];
    for (const moment of MOMENTS) {
      const stride = MANY.includes(moment) ? STRIDE : Math.ceil(STRIDE / 6);
      for (let nth = 1, last = 1; nth <= last; nth += stride) {
        const { moments, failure } = await step(scenario, moment, nth);
        last = Math.max(last, moments);
        if (failure !== undefined) failures.push(`${moment}, number ${nth}: ${failure}`);
      }
    }
    expect(failures).toEqual([]);
  });
});
