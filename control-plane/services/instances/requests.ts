import type { Tx } from '../../store/store.js';
import { getOrganization } from '../accounts/organizations.js';
import { recordCommand } from './commands.js';
import type { Instance } from './queries.js';
import { recordNote, type Reason } from '../events/timeline.js';
import { transition } from './transitions.js';
import { canRelease } from './release.js';

/** Moves an instance from `running` to `stopping` and commands the stop. While payments are frozen, it also releases the GPUs. */
export function requestStop(tx: Tx, instance: Instance, reason: Reason): Instance {
  const isFrozen = getOrganization(tx, instance.organization_id).payments_frozen_at !== null;
  const releases = isFrozen && canRelease(tx, instance);
  const release = releases
    ? { gpu_release: 'pending' as const, gpu_release_requested_at: tx.now }
    : { gpu_release: null, gpu_release_requested_at: null };
  const stopping = transition(tx, instance, 'stopping', reason, release);
  return recordCommand(tx, stopping, releases ? 'release' : 'stop').instance;
}

/** Moves an instance to `destroying` from any status but `destroyed` and commands the destroy, also again while `destroying`. */
export function requestDestroy(tx: Tx, instance: Instance, reason: Reason): Instance {
  const isRepeated = instance.status === 'destroying';
  if (isRepeated) recordNote(tx, instance.id, reason.kind, reason.message);
  const next = isRepeated ? instance : transition(tx, instance, 'destroying', reason);
  tx.nudge('lost-machines');
  return recordCommand(tx, next, 'destroy').instance;
}
