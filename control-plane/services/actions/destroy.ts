import { actorOf } from '../../domain/act.js';
import type { Caller } from '../../domain/caller.js';
import type { Platform } from '../system/platform.js';
import { getOwnInstance } from '../instances/queries.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';
import { checkAction } from './stop.js';
import { requestDestroy } from '../instances/requests.js';

/**
 * Destroys an instance with its container and disk, from any status but `destroyed`. While `destroying`, it records a new destroy
 * command. Refuses with INSTANCE_NOT_FOUND and INVALID_STATE.
 */
export function destroy(
  platform: Platform,
  caller: Caller,
  id: string,
): { instance: InstanceDetails; repeated: boolean } {
  return platform.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    checkAction(instance, 'destroy');
    const repeated = instance.status === 'destroying';
    const message = repeated ? 'destroy requested again' : 'destroy requested';
    const destroying = requestDestroy(tx, instance, { kind: 'destroy_requested', message }, actorOf(caller));
    return { instance: describeInstance(platform, tx, destroying), repeated };
  });
}
