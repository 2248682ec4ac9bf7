import { describe, expect, it } from 'vitest';
import { MOMENTS } from './fate.js';
import { SCENARIOS } from './scenarios.js';
import { step } from './steps.js';

describe('whatever goes wrong once, and wherever, nothing is lost and everything settles:', () => {
  it.each(SCENARIOS)('$name', { timeout: 1_200_000 }, async (scenario) => {
    const failures: string[] = [];
    for (const moment of MOMENTS) {
      for (let nth = 1, last = 1; nth <= last; nth++) {
        const { moments, failure } = await step(scenario, moment, nth);
        last = Math.max(last, moments);
        if (failure !== undefined) failures.push(`${moment}, number ${nth}: ${failure}`);
      }
    }
    expect(failures).toEqual([]);
  });
});
