import { recent } from '../../../shared/recent.js';
import { TokenBucket } from '../../domain/token-bucket.js';
import { oncePer } from '../../store/remembered.js';
import type { Core } from '../system/platform.js';

/** What a host may tell of one instance: a deploy with each tenth of its image at once, then one event every ten seconds. */
const BURST = 20;
const A_SECOND = 0.1;
/** The instances whose budget is remembered; others have the whole budget again. */
const MOST_INSTANCES = 20_000;

const budgetsOf = oncePer((_: Core) => recent<TokenBucket>(MOST_INSTANCES));

/**
 * Tells whether a host may add an event to the timeline of an instance. Without this, a host could push everything else out of the
 * timeline, and make its organization's stream expire for readers that are slower.
 */
export function mayTell(core: Core, instanceId: string): boolean {
  const budgets = budgetsOf(core);
  const budget = budgets.get(instanceId) ?? new TokenBucket(BURST, A_SECOND);
  budgets.set(instanceId, budget);
  return budget.take(1, core.clock.monotonic());
}
