import { expect, it } from 'vitest';
import { simulate } from './run.js';
import type { World } from './world.js';

const SEEDS = [2, 3, 5, 7];
const STEPS = 40;
/** Of each group, between its use cases and their commit. */
const CRASH_RATE = 0.3;
/** A seed in which no group is lost would prove nothing. */
const LEAST_LOST = 1;

it.each(SEEDS)(
  'a kill between a use case and the commit of its group loses only what nobody was told (seed %i)',
  async (seed) => {
    let lost = 0;
    const check = ({ controlPlane }: World): undefined => {
      controlPlane.groupCrashRate = CRASH_RATE;
      lost = controlPlane.lostGroups;
    };
    const { failure } = await simulate(seed, STEPS, { groupsCommits: true, check });
    expect(failure).toBeUndefined();
    expect(lost).toBeGreaterThanOrEqual(LEAST_LOST);
  },
);
