import type { Bug } from './bug.js';
import { CONVERGED } from './invariants.js';
import type { simulate } from './run.js';

export type Simulate = typeof simulate;

/** Enough for what is judged after each step: the run ends with the step that breaks it. */
export const MOST_STEPS = 250;
/** Fewer are tried too where a world is judged only after it is healed. */
const FEW_STEPS = [10, 20, 30, 50, 80];

/** Returns which of the first seeds, with how many steps, catches a bug in the least processor time, and in how many seconds. */
export async function cheapest(simulate: Simulate, bug: Bug, seeds: number): Promise<string> {
  const { invariant } = bug;
  const hasLimits = bug.hasLimits ?? false;
  const best = { seed: 0, steps: 0, seconds: Infinity };
  for (let seed = 1; seed <= seeds; seed++) {
    for (const steps of invariant in CONVERGED ? FEW_STEPS : [MOST_STEPS]) {
      const seconds = stopwatch();
      const check = () => (seconds() > best.seconds ? 'it takes longer' : undefined);
      const { failure = '' } = await simulate(seed, steps, { only: invariant, hasLimits, check });
      const isCaught = failure.includes(`${invariant}: `) && seconds() < best.seconds;
      if (isCaught) Object.assign(best, { seed, steps, seconds: seconds() });
    }
  }
  return JSON.stringify(best);
}

/** Returns a function that returns how many seconds of processor time this process has taken since. */
function stopwatch(): () => number {
  const begin = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(begin);
    return (user + system) / 1e6;
  };
}
