import { expect, it } from 'vitest';
import { simulate } from './run.js';
import type { World } from './world.js';

const SEEDS = [11, 12, 13, 14];
const STEPS = 200;
/** Of each use case: often enough that many are killed before the commit of their group. */
const CRASH_RATE = 0.004;

function crashOften({ controlPlane }: World): undefined {
  controlPlane.crashRate = CRASH_RATE;
}

it.each(SEEDS)(
  'a kill between a use case and the commit of its group loses only what nobody was told (seed %i)',
  async (seed) => {
    const { failure, counts } = await simulate(seed, STEPS, { groupsCommits: true, check: crashOften });
    expect(failure).toBeUndefined();
    expect(counts.commits).toBeGreaterThan(0);
  },
);
