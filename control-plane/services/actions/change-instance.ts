import { actorOf } from '../../domain/act.js';
import { keyIdOf, type Caller } from '../../domain/caller.js';
import { areLooser, tooNearLimit, type InstanceLimits } from '../../domain/money/instance-limits.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import { keepEarlierLimit } from '../billing/limits/earlier-limits.js';
import { usedUpLimit } from '../billing/limits/enforce-limits.js';
import { checkExpectedOf } from '../billing/limits/expected-stops.js';
import { settleOrganizations } from '../billing/settle/settle.js';
import { findCaps, refusalOfLoosening } from '../billing/limits/spend-check.js';
import { findLiveRates, getOwnInstance, type Instance } from '../instances/queries.js';
import type { Tx } from '../../store/store.js';
import { amend, type InstanceChanges } from '../instances/transitions.js';
import { settleSoon } from '../metering/meters.js';
import { recordAct } from '../system/acts.js';
import type { Platform } from '../system/platform.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';

export type InstanceSettings = Partial<InstanceLimits> & { label?: string | null };

/**
 * Changes the label and the limits of an instance; what is absent stays. Limits concern what is used from now on. Refuses with
 * INSTANCE_NOT_FOUND, with INVALID_STATE for one that is destroyed or about to be, and with VALIDATION_FAILED a new time to stop that is
 * past and limits that {@link checkLimits} names; with SPEND_LIMIT_REACHED like {@link checkMayLoosen}; unless `expected` is null, with
 * INVALID_STATE like {@link checkExpectedOf}.
 */
export function changeInstance(
  platform: Platform,
  caller: Caller,
  id: string,
  settings: InstanceSettings,
  expected: number | null = null,
): InstanceDetails {
  return platform.store.transact((tx) => {
    settleOrganizations(platform, tx, [caller.organizationId]);
    const instance = getOwnInstance(tx, caller, id);
    if (instance.status === 'destroying' || instance.status === 'destroyed')
      throw new Refusal('INVALID_STATE', `the instance is ${instance.status}; it cannot be changed any more`);
    const changes = changesBy(instance, settings, tx.now);
    // A form that saves a label can send back the limits as they are, also a time to stop that is past by now.
    if (LIMITS.some((limit) => changes[limit] !== instance[limit])) {
      if (changes.stop_at !== instance.stop_at) checkStopTime(changes.stop_at, tx.now);
      checkLimits({ ...instance, ...changes }, tx.now);
    }
    if (areLooser({ ...instance, ...changes }, instance)) checkMayLoosen(tx, caller, instance);
    keepEarlierLimits(tx, instance, changes);
    const changed = amend(tx, instance, changes);
    if (expected !== null) checkExpectedOf(platform, tx, changed, expected);
    settleSoon(tx, caller.organizationId);
    recordAct(tx, caller.organizationId, actorOf(caller), 'instance.update', `instances/${id}`);
    return describeInstance(platform, tx, changed);
  });
}

/** Refuses with VALIDATION_FAILED a time to stop that is not in the future. */
export function checkStopTime(stopAt: number | null | undefined, now: number): void {
  if (typeof stopAt === 'number' && stopAt <= now) throw invalidField('stop_at', 'must be in the future');
}

/**
 * Refuses with VALIDATION_FAILED a limit that would destroy the instance at once, and one that leaves too little of GPU time to an instance
 * that is on its way: such a limit would make free what it runs before it is shown as running.
 */
function checkLimits(instance: Instance, now: number): void {
  const used = usedUpLimit(instance, now);
  if (used && instance.on_limit === 'destroy')
    throw invalidField('on_limit', 'would destroy the instance at once; set a higher limit, or send a DELETE');
  const isOnItsWay = instance.status === 'creating' || instance.status === 'starting';
  const near = isOnItsWay ? tooNearLimit(instance, instance, now) : undefined;
  if (near)
    throw invalidField(
      near === 'stop_at' ? 'stop_at' : 'max_charge_micro',
      `must leave at least five minutes of GPU time while the instance is ${instance.status}`,
    );
}

/**
 * Refuses with SPEND_LIMIT_REACHED an API key with caps that would let a run cost more which counts for others, and so not for its caps.
 * Of an instance that does not run, the last run decides.
 */
function checkMayLoosen(tx: Tx, caller: Caller, { run_key_id, organization_id }: Instance): void {
  const keyId = keyIdOf(caller);
  if (keyId === null || keyId === run_key_id) return;
  const [cap] = findCaps(tx, { organizationId: organization_id, apiKeyId: keyId }).filter(
    (state) => state.cap.api_key_id === keyId,
  );
  if (!cap) return;
  throw refusalOfLoosening(cap, findLiveRates(tx, organization_id));
}

const LIMITS = ['stop_at', 'max_charge_micro', 'idle_stop_minutes', 'on_limit'] as const;
const NOT_IDLE = { idle_from: null, idle_to: null, idle_stops_at: null };

function changesBy(instance: Instance, settings: InstanceSettings, now: number): InstanceChanges {
  const limits = limitsFrom(instance, settings);
  const isNewCharge = limits.max_charge_micro !== instance.max_charge_micro;
  const max_charge_from = limits.max_charge_micro === null ? null : now;
  return {
    ...limits,
    ...(settings.label === undefined ? {} : { label: settings.label }),
    ...(isNewCharge ? { max_charge_from, charge_told_percent: null } : {}),
    ...(limits.idle_stop_minutes === instance.idle_stop_minutes ? {} : NOT_IDLE),
  };
}

/** Keeps the limits that are changed now, for time before that is not charged yet. */
function keepEarlierLimits(tx: Tx, instance: Instance, changes: InstanceChanges): void {
  const { id: limited_id, organization_id, stop_at, max_charge_micro, max_charge_from } = instance;
  const its = { organization_id, limited_id };
  if (stop_at !== null && stop_at !== changes.stop_at)
    keepEarlierLimit(tx, { ...its, kind: 'stop_at', limit_micro: null, from_at: stop_at, spent_micro: 0 });
  if (max_charge_micro !== null && max_charge_micro !== changes.max_charge_micro) {
    const spent = { limit_micro: max_charge_micro, spent_micro: instance.spend_micro };
    keepEarlierLimit(tx, { ...its, kind: 'max_charge', ...spent, from_at: max_charge_from ?? 0 });
  }
}

function limitsFrom(before: InstanceLimits, settings: InstanceSettings): InstanceLimits {
  const { stop_at, max_charge_micro, idle_stop_minutes, on_limit } = { ...before, ...settings };
  return { stop_at, max_charge_micro, idle_stop_minutes, on_limit };
}
