import { actorOf } from '../../domain/act.js';
import type { Caller } from '../../domain/caller.js';
import { tooNearLimit, type InstanceLimits } from '../../domain/instance-limits.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import { usedUpLimit } from '../billing/enforce-limits.js';
import { effectiveFrom } from '../billing/spend-caps.js';
import { settleOrganizations } from '../billing/settle.js';
import { getOwnInstance, type Instance } from '../instances/queries.js';
import { amend, type InstanceChanges } from '../instances/transitions.js';
import { settleSoon } from '../metering/meters.js';
import { recordAct } from '../system/acts.js';
import type { Platform } from '../system/platform.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';

export type InstanceSettings = Partial<InstanceLimits> & { label?: string | null };

/**
 * Changes the label and the limits of an instance; what is absent stays. Limits concern what is used from now on. Refuses with
 * INSTANCE_NOT_FOUND, with INVALID_STATE for one that is destroyed or about to be, and with VALIDATION_FAILED a time to stop that is past
 * and limits that {@link checkLimits} names.
 */
export function changeInstance(
  platform: Platform,
  caller: Caller,
  id: string,
  settings: InstanceSettings,
): InstanceDetails {
  return platform.store.transact((tx) => {
    checkStopTime(settings.stop_at, tx.now);
    settleOrganizations(platform, tx, [caller.organizationId]);
    const instance = getOwnInstance(tx, caller, id);
    if (instance.status === 'destroying' || instance.status === 'destroyed')
      throw new Refusal('INVALID_STATE', `the instance is ${instance.status}; it cannot be changed any more`);
    const changes = changesBy(instance, settings, tx.now);
    checkLimits({ ...instance, ...changes }, tx.now);
    const changed = amend(tx, instance, changes);
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

function changesBy(instance: Instance, settings: InstanceSettings, now: number): InstanceChanges {
  const limits = limitsFrom(instance, settings);
  const { max_charge_micro, max_charge_from } = instance;
  const isNewCharge = limits.max_charge_micro !== max_charge_micro;
  const from = effectiveFrom(now, limits.max_charge_micro, max_charge_micro, max_charge_from);
  return {
    ...limits,
    ...(settings.label === undefined ? {} : { label: settings.label }),
    ...(isNewCharge ? { max_charge_from: from, charge_told_percent: null } : {}),
  };
}

function limitsFrom(before: InstanceLimits, settings: InstanceSettings): InstanceLimits {
  const { stop_at = before.stop_at, max_charge_micro = before.max_charge_micro, on_limit = before.on_limit } = settings;
  return { stop_at, max_charge_micro, on_limit };
}
