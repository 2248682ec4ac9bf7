import { burnPerHourMicro, chargedPerHourMicro, countedFor } from '../../../domain/money/burn.js';
import { leavesEnough, tooNearLimit, type InstanceLimits } from '../../../domain/money/instance-limits.js';
import { Refusal } from '../../../domain/refusal.js';
import { PERIODS, isPeriod, periodAt } from '../../../domain/money/spend-cap.js';
import type { Tx } from '../../../store/store.js';
import { findCapRows, isOnPeriod, type Cap } from '../../organizations/keys/cap-rows.js';
import type { Instance, LiveInstance } from '../../instances/queries.js';
import { earliestOf, spentByDays, spentIn } from './spent-days.js';

/** Who causes a run. */
export interface Spender {
  organizationId: string;
  /** Null: no key does. */
  apiKeyId: string | null;
}

/** A cap of an organization or an API key, with what counts for it in the present period; for one on the burn, nothing. */
export interface CapState {
  cap: Cap;
  spentMicro: number;
}

/** Returns the caps that concern what a spender deploys or starts. */
export function findCaps(tx: Tx, { organizationId, apiKeyId }: Spender): CapState[] {
  const caps = findCapRows(tx, apiKeyId === null ? [organizationId] : [organizationId, apiKeyId]);
  const owners = new Map(caps.filter(isOnPeriod).map(({ owner_id, api_key_id }) => [owner_id, api_key_id]));
  const from = earliestOf(PERIODS, tx.now);
  const spent = spentByDays(
    tx,
    [...owners.values()].map((ownerKey) => ({ organizationId, apiKeyId: ownerKey, from })),
  );
  return caps.map((cap) => {
    if (!isOnPeriod(cap)) return { cap, spentMicro: 0 };
    return { cap, spentMicro: spentIn(spent.get(cap.owner_id) ?? [], periodAt(cap.kind, tx.now)) };
  });
}

/**
 * Returns the refusal (SPEND_LIMIT_REACHED) of what would burn more per hour than a cap allows, and of what a cap on the day or the month
 * leaves less than five minutes. `live` are the instances of the organization, as they would be then.
 */
export function refusalOfCaps(caps: readonly CapState[], live: readonly CappedInstance[]): Refusal | undefined {
  for (const state of caps) {
    const refusal = refusalOfBurn(state, live) ?? refusalOfPeriod(state, live);
    if (refusal) return refusal;
  }
  return undefined;
}

type CappedInstance = Omit<LiveInstance, 'id'>;

function refusalOfBurn(state: CapState, live: readonly CappedInstance[]): Refusal | undefined {
  const { kind, amount_micro: most } = state.cap;
  if (kind !== 'burn_per_hour') return undefined;
  const burn_per_hour_micro = burnPerHourMicro(countedFor(state.cap.api_key_id, live));
  if (burn_per_hour_micro <= most) return undefined;
  const message = `${nameOf(state)} would spend more per hour than an admin allows; stop or destroy other instances, or ask an admin to raise the cap`;
  return reached(kind, message, most, burn_per_hour_micro);
}

/**
 * Returns the refusal of instances for which a cap on a period is used up, or would be in less than five minutes of what all of them are
 * charged together: each alone could have enough, and then run for nothing until it is shown as running.
 */
export function refusalOfPeriod(state: CapState, live: readonly CappedInstance[]): Refusal | undefined {
  const { kind, amount_micro: most } = state.cap;
  const its = countedFor(state.cap.api_key_id, live);
  if (!isPeriod(kind) || leavesEnough(most - state.spentMicro, chargedPerHourMicro(its))) return undefined;
  const message = `${nameOf(state)} has spent what an admin allows for this ${kind} (UTC), or all but five minutes of it; wait for the next one, or ask an admin to raise the cap`;
  return reached(kind, message, most, burnPerHourMicro(its));
}

/** Returns the refusal (SPEND_LIMIT_REACHED) of an API key that would loosen the limits of a run that does not count for this cap of it. */
export function refusalOfLoosening({ cap }: CapState, live: readonly CappedInstance[]): Refusal {
  const message =
    'this API key has caps, and has not started this instance: what it runs does not count for them, so the key can only tighten its limits; ask a person of the organization to loosen them';
  return reached(cap.kind, message, cap.amount_micro, burnPerHourMicro(countedFor(cap.api_key_id, live)));
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
