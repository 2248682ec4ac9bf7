import { burnPerHourMicro, chargedPerHourMicro } from '../../domain/burn.js';
import { leavesEnough, tooNearLimit, type InstanceLimits } from '../../domain/instance-limits.js';
import { Refusal } from '../../domain/refusal.js';
import { PERIODS, periodAt, type Period } from '../../domain/spend-cap.js';
import type { Row } from '../../store/schema.js';
import { rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Instance, LiveInstance } from '../instances/queries.js';
import { spentByDay, spentIn } from './spent-days.js';

/** Whose deploys a cap counts. */
export interface Spender {
  organizationId: string;
  /** Null: no key has deployed it. */
  apiKeyId: string | null;
}

/** A cap of an organization or an API key, with what counts for its day and month. */
export interface CapState {
  cap: Row<'spend_caps'>;
  spent: Record<Period, number>;
}

/** Returns the caps that concern what a spender deploys or starts. */
export function findCaps(tx: Tx, { organizationId, apiKeyId }: Spender): CapState[] {
  const ids = apiKeyId === null ? [organizationId] : [organizationId, apiKeyId];
  return ids.flatMap((id) => {
    const cap = tx.get(rowById('spend_caps', id));
    if (!cap) return [];
    const days = spentByDay(tx, { organizationId, apiKeyId: cap.api_key_id, from: periodAt('month', tx.now).from });
    const spentOf = (period: Period) => spentIn(days, periodAt(period, tx.now));
    return [{ cap, spent: { day: spentOf('day'), month: spentOf('month') } }];
  });
}

/**
 * Returns the refusal (SPEND_LIMIT_REACHED) of what would burn more per hour than a cap allows, and of what a cap on the day or the month
 * leaves less than five minutes. `live` are the instances of the organization, as they would be then.
 */
export function refusalOfCaps(caps: readonly CapState[], live: readonly CappedInstance[]): Refusal | undefined {
  for (const state of caps) {
    const refusal = refusalOfBurn(state, live) ?? refusalOfPeriods(state, live);
    if (refusal) return refusal;
  }
  return undefined;
}

type CappedInstance = Omit<LiveInstance, 'id'>;

function countedBy({ cap: { api_key_id } }: CapState, live: readonly CappedInstance[]): readonly CappedInstance[] {
  return api_key_id === null ? live : live.filter((one) => one.apiKeyId === api_key_id);
}

function refusalOfBurn(state: CapState, live: readonly CappedInstance[]): Refusal | undefined {
  const most = state.cap.burn_per_hour_micro;
  const burn_per_hour_micro = burnPerHourMicro(countedBy(state, live));
  if (most === null || burn_per_hour_micro <= most) return undefined;
  const message = `${nameOf(state)} would spend more per hour than an admin allows; stop or destroy other instances, or ask an admin to raise the cap`;
  return reached('burn_per_hour', message, most, burn_per_hour_micro);
}

/**
 * Returns the refusal of instances for which a cap on the day or the month is used up, or would be in less than five minutes of what all of
 * them are charged together: each alone could have enough, and then run for nothing until it is shown as running.
 */
export function refusalOfPeriods(
  state: CapState,
  live: readonly CappedInstance[],
  periods: readonly Period[] = PERIODS,
): Refusal | undefined {
  const its = countedBy(state, live);
  for (const period of periods) {
    const limit = state.cap[`${period}_micro`];
    if (limit === null || leavesEnough(limit - state.spent[period], chargedPerHourMicro(its))) continue;
    const message = `${nameOf(state)} has spent what an admin allows for this ${period} (UTC), or all but five minutes of it; wait for the next one, or ask an admin to raise the cap`;
    return reached(period, message, limit, burnPerHourMicro(its));
  }
  return undefined;
}

function nameOf({ cap }: CapState): string {
  return cap.api_key_id === null ? 'the organization' : 'this API key';
}

/** Refuses with SPEND_LIMIT_REACHED like {@link refusalOfCaps}. */
export function checkSpendCaps(tx: Tx, spender: Spender, live: readonly CappedInstance[]): void {
  const refusal = refusalOfCaps(findCaps(tx, spender), live);
  if (refusal) throw refusal;
}

/** Returns the refusal (SPEND_LIMIT_REACHED) of a deploy or start whose own limit leaves less than five minutes of GPU time. */
export function refusalOfOwnLimit(
  limits: Pick<InstanceLimits, 'stop_at' | 'max_charge_micro'>,
  spent: { spend_micro: number; price_per_hour_micro: number },
  now: number,
  burn_per_hour_micro: number,
): Refusal | undefined {
  const near = tooNearLimit(limits, spent, now);
  if (!near) return undefined;
  const field = near === 'stop_at' ? 'stop_at' : 'max_charge_micro';
  const message = `the limit ${field} of this instance is used up, or leaves less than five minutes of GPU time; set a higher one`;
  return reached(near, message, near === 'stop_at' ? null : limits.max_charge_micro, burn_per_hour_micro);
}

/** Refuses with SPEND_LIMIT_REACHED like {@link refusalOfOwnLimit}. */
export function checkOwnLimit(instance: Instance, now: number, burn_per_hour_micro: number): void {
  const refusal = refusalOfOwnLimit(instance, instance, now, burn_per_hour_micro);
  if (refusal) throw refusal;
}

function reached(cap: string, message: string, limit_micro: number | null, burn_per_hour_micro: number): Refusal {
  return new Refusal('SPEND_LIMIT_REACHED', message, { cap, limit_micro, burn_per_hour_micro });
}
