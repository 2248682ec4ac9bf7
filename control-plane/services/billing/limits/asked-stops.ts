import type { Settlement } from '../../../domain/money/settlement.js';
import type { Tx } from '../../../store/store.js';
import { isBeingStopped } from '../../instances/commands.js';
import type { Instance } from '../../instances/queries.js';
import { openInterval } from '../../metering/meters.js';

/**
 * Tells whether a stop because something is used up needs not be asked for: a stop has timed out and is still sent, and no GPU time was
 * charged since, so the same is used up as then. Otherwise the instance would change its status every 30 minutes. `next` is a settlement
 * that is not written yet.
 */
export function isAskedAlready(tx: Tx, instance: Instance, next?: Settlement): boolean {
  if (!isBeingStopped(tx, instance)) return false;
  const interval = openInterval(tx, instance.id);
  if (!interval) return true;
  const { id, opened_at, settled_to, written_off_ms } = interval;
  const moved = next?.intervals.find((one) => one.id === id);
  return (moved?.settledTo ?? settled_to) - opened_at - written_off_ms - (moved?.absorbedMs ?? 0) <= 0;
}
