import { beforeAll, expect, it } from 'vitest';
import type { Bug } from './bug.js';
import { MOST_STEPS, cheapest } from './cheapest.js';
import { loadWith, type Broken } from './put-in.js';

/** How many seeds to search for one that catches a bug sooner than the noted one does: `TEST_SEARCH_SEEDS=60 npx vitest ...`. */
const SEARCHED = Number(process.env['TEST_SEARCH_SEEDS'] ?? 0);
/** What a seed does changes with the simulation. Then many seeds that take few steps are quicker than one that takes many. */
const TRIES = [
  { seeds: 12, steps: 30 },
  { seeds: 12, steps: 80 },
  { seeds: 60, steps: MOST_STEPS },
].flatMap(({ seeds, steps }) => Array.from({ length: seeds }, (_, index) => ({ seed: index + 1, steps })));

const NO_FAULT = ['a message is lost', 0] as const;

/** A test for each bug: with it in the code, its invariant is broken. */
export function describeBugs(bugs: readonly Bug[]): void {
  let broken: Broken;

  beforeAll(async () => {
    broken = await loadWith(bugs);
  });

  it.each(bugs)('by “$invariant”: $bug', async (bug) => {
    const failure = await (bug.scenario === undefined ? simulated(broken, bug) : played(broken, bug, bug.scenario));
    expect(failure).toContain(`${bug.invariant}: `);
    if (SEARCHED > 0) console.warn(`${bug.bug}: ${await cheapest(broken.simulate, bug, SEARCHED)}`);
  });
}

/** Returns what fails with a bug in some random world. */
async function simulated({ simulate, putIn }: Broken, bug: Bug): Promise<string | undefined> {
  putIn(bug);
  const { seed, steps = MOST_STEPS, invariant, hasLimits = false } = bug;
  const noted = seed === undefined ? [] : [{ seed, steps }];
  for (const [tried, next] of [...noted, ...TRIES].entries()) {
    const { failure } = await simulate(next.seed, next.steps, { only: invariant, hasLimits });
    if (failure === undefined) continue;
    if (tried > 0) console.warn(`${bug.bug}: note what has caught it now: ${JSON.stringify(next)}`);
    return failure;
  }
  return undefined;
}

/** Returns what fails with a bug in a scenario, which holds without it. */
async function played({ scenarios, step, putIn }: Broken, bug: Bug, name: string): Promise<string | undefined> {
  const scenario = scenarios.find((one) => one.name === name);
  if (!scenario) throw new Error(`there is no scenario "${name}"`);
  const [moment, noted] = bug.fault ?? NO_FAULT;
  const only = bug.invariant;
  putIn(undefined);
  expect(await step(scenario, moment, noted)).not.toHaveProperty('failure');
  putIn(bug);
  const { failure, moments } = await step(scenario, moment, noted, { only });
  if (failure !== undefined) return failure;
  for (let nth = 1; nth <= moments; nth++) {
    const now = await step(scenario, moment, nth, { only });
    if (now.failure === undefined) continue;
    console.warn(`${bug.bug}: note what has caught it now: number ${nth}`);
    return now.failure;
  }
  return undefined;
}
