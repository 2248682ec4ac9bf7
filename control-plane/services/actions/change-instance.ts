import type { Caller } from '../../domain/caller.js';
import type { InstanceLimits } from '../../domain/instance-limits.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import { effectiveFrom } from '../billing/spend-caps.js';
import { settleOrganizations } from '../billing/settle.js';
import { getOwnInstance, type Instance } from '../instances/queries.js';
import { amend, type InstanceChanges } from '../instances/transitions.js';
import { settleSoon } from '../metering/meters.js';
import type { Platform } from '../system/platform.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';

export type InstanceSettings = Partial<InstanceLimits> & { label?: string | null };

/**
 * Changes the label and the limits of an instance; what is absent stays. Limits concern what is used from now on. Refuses with
 * INSTANCE_NOT_FOUND, with INVALID_STATE for one that is destroyed or about to be, and with VALIDATION_FAILED a time to stop that is past.
 */
export function changeInstance(
  platform: Platform,
  caller: Caller,
  id: string,
  settings: InstanceSettings,
): InstanceDetails {
  return platform.store.transact((tx) => {
    getOwnInstance(tx, caller, id);
    checkStopTime(settings.stop_at, tx.now);
    settleOrganizations(platform, tx, [caller.organizationId]);
    const instance = getOwnInstance(tx, caller, id);
    if (instance.status === 'destroying' || instance.status === 'destroyed')
      throw new Refusal('INVALID_STATE', `the instance is ${instance.status}; it cannot be changed any more`);
    const changed = amend(tx, instance, changesBy(instance, settings, tx.now));
    settleSoon(tx, caller.organizationId);
    return describeInstance(platform, tx, changed);
  });
}

/** Refuses with VALIDATION_FAILED a time to stop that is not in the future. */
export function checkStopTime(stopAt: number | null | undefined, now: number): void {
  if (typeof stopAt === 'number' && stopAt <= now) throw invalidField('stop_at', 'must be in the future');
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
