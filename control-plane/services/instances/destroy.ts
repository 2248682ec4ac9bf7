import type { Caller } from '../../domain/caller.js';
import type { Platform } from '../platform.js';
import { recordCommand } from './commands.js';
import { getOwnInstance } from './queries.js';
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
    const next = repeated ? instance : transition(tx, instance, 'destroying');
    recordEvent(tx, id, 'destroy_requested', repeated ? 'destroy requested again' : 'destroy requested');
    tx.nudge('lost-machines');
    const { instance: recorded } = recordCommand(tx, platform.ids, next, 'destroy');
    return { instance: describeInstance(platform, tx, recorded), repeated };
  });
}
