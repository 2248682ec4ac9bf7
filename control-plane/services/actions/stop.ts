import { actorOf } from '../../domain/act.js';
import type { Caller } from '../../domain/caller.js';
import { allowedActions, type InstanceAction } from '../../domain/instances/instance-state.js';
import { Refusal } from '../../domain/refusal.js';
import type { Platform } from '../system/platform.js';
import { getOwnInstance, type Instance } from '../instances/queries.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';
import { requestStop } from '../instances/requests.js';

/** Refuses with INVALID_STATE an action that the status of the instance does not allow (API rule 26). */
export function checkAction(instance: Instance, action: InstanceAction): void {
  if (allowedActions(instance.status).includes(action)) return;
  throw new Refusal('INVALID_STATE', `the instance is ${instance.status}; ${action} is not possible now`);
}

/**
 * Stops an instance and keeps its disk. It keeps its GPUs, too, unless a dispute has frozen the organization's payments and the
 * machine can release them. Refuses with INSTANCE_NOT_FOUND and INVALID_STATE.
 */
export function stop(platform: Platform, caller: Caller, id: string): InstanceDetails {
  return platform.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    checkAction(instance, 'stop');
    const stopping = requestStop(tx, instance, { kind: 'stop_requested', message: 'stop requested' }, actorOf(caller));
    return describeInstance(platform, tx, stopping);
  });
}
