import { GRACE_MS } from '../../../domain/deadlines.js';
import { dollars } from '../../../domain/money/money.js';
import type { LimitStop } from '../../../domain/money/settlement.js';
import { isPeriod } from '../../../domain/money/spend-cap.js';
import type { LimitName } from '../../../domain/money/spend-limit.js';
import type { Tx } from '../../../store/store.js';
import type { Reason } from '../../events/timeline.js';
import { findInstance, type Instance } from '../../instances/queries.js';
import { requestDestroy, requestStop } from '../../instances/requests.js';
import { cutInterval, openInterval } from '../../metering/meters.js';
import { findMachineRow } from '../../machines/machines.js';
import { findStep } from '../../system/clock-steps.js';
import type { Platform } from '../../system/platform.js';
import { isAskedAlready } from './asked-stops.js';

/**
 * Stops a running instance whose limit is used up, and charges it no further than that time. If its renter has said so, a limit of the
 * instance itself destroys it; while an operator must confirm the clock, it only stops. A stop that has timed out and is still sent is
 * not asked for again: then GPU time is written off for as long as the limit is used up.
 */
export function enforceLimit(platform: Platform, tx: Tx, { instanceId, limit, at }: LimitStop): void {
  const instance = findInstance(tx, instanceId);
  if (instance?.status !== 'running') return;
  const destroys = limitDestroys(platform, tx, instance, limit);
  if (!destroys && isAskedAlready(tx, instance)) return;
  const interval = openInterval(tx, instanceId);
  if (interval) cutInterval(tx, interval, at);
  const reason = reasonFor(limit, instance, destroys);
  if (destroys) requestDestroy(tx, instance, reason);
  else requestStop(tx, instance, reason);
}

/** Destroys a stopped instance whose limit is used up, if its renter has said so. Its disk is charged until then. */
export function destroyAtLimit(platform: Platform, tx: Tx, instanceId: string): void {
  const instance = findInstance(tx, instanceId);
  if (instance?.status !== 'stopped') return;
  const limit = usedUpLimit(instance, tx.now);
  if (limit && limitDestroys(platform, tx, instance, limit))
    requestDestroy(tx, instance, reasonFor(limit, instance, true));
}

/** Returns the limit of an instance itself that is used up. */
export function usedUpLimit(
  {
    id: instanceId,
    stop_at,
    max_charge_micro,
    spend_micro,
  }: Pick<Instance, 'id' | 'stop_at' | 'max_charge_micro' | 'spend_micro'>,
  now: number,
): LimitName | undefined {
  if (stop_at !== null && stop_at <= now) return { kind: 'stop_at', instanceId };
  if (max_charge_micro !== null && spend_micro >= max_charge_micro) return { kind: 'max_charge', instanceId };
  return undefined;
}

/**
 * Tells whether a limit destroys an instance instead of stopping it. Not in the first two minutes of a control plane, not after a restore
 * before the host has said what it has, and not while an operator must confirm the clock.
 */
export function limitDestroys(
  { clock, bootedAt }: Pick<Platform, 'clock' | 'bootedAt'>,
  tx: Tx,
  { on_limit, machine_id }: Instance,
  limit: Pick<LimitName, 'kind'> | { kind: 'idle' },
): boolean {
  if (!isOfInstance(limit) || on_limit !== 'destroy') return false;
  if (clock.monotonic() - bootedAt < GRACE_MS || !isClockTrusted(tx)) return false;
  return findMachineRow(tx, machine_id).needs_resync === 0;
}

function isClockTrusted(tx: Tx): boolean {
  return findStep(tx) === undefined;
}

function isOfInstance({ kind }: { kind: LimitName['kind'] | 'idle' }): boolean {
  return !isPeriod(kind);
}

function reasonFor(limit: LimitName, { max_charge_micro }: Instance, destroys: boolean): Reason {
  const follows = destroys
    ? 'the instance is destroyed, as you have set'
    : 'the instance is stopped, and its disk is kept';
  switch (limit.kind) {
    case 'stop_at':
      return { kind: 'stop_time_reached', message: `the time in stop_at has come: ${follows}` };
    case 'max_charge':
      return {
        kind: 'charge_limit_reached',
        message: `it has cost ${dollars(max_charge_micro ?? 0)}, its max_charge_micro: ${follows}`,
      };
    default: {
      const whose = limit.apiKeyId === null ? 'the organization' : 'the API key that has started it';
      return { kind: 'spend_cap_reached', message: `${whose} has spent what it may in a ${limit.kind}: ${follows}` };
    }
  }
}
