import type { Ids } from '../../../shared/ids.js';
import type { Caller } from '../../domain/caller.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../platform.js';
import { recordCommand } from './commands.js';
import { getOwnInstance, type Instance } from './queries.js';
import { describeInstance, type InstanceDetails } from './read.js';
import { checkAction } from './stop.js';
import { recordEvent, transition } from './transitions.js';

/**
 * Removes container, disk and contents, from any status but `destroyed`. Repeated while `destroying`, it sends the teardown
 * again with a new identity. Refuses with INSTANCE_NOT_FOUND and INVALID_STATE.
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
    recordEvent(tx, id, 'destroy_requested', repeated ? 'destroy requested again' : 'destroy requested');
    return { instance: describeInstance(platform, tx, requestDestroy(tx, platform.ids, instance)), repeated };
  });
}

/** From any status but `destroyed`; one that is `destroying` is told so again, with a new identity. */
export function requestDestroy(tx: Tx, ids: Ids, instance: Instance): Instance {
  const next = instance.status === 'destroying' ? instance : transition(tx, instance, 'destroying');
  tx.nudge('lost-machines');
  return recordCommand(tx, ids, next, 'destroy').instance;
}
