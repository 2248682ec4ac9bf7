import { SYSTEM, type Act, type Actor } from '../../domain/act.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../organizations/organizations.js';
import { recordAct } from '../system/acts.js';
import { recordCommand } from './commands.js';
import type { Instance } from './queries.js';
import { recordNote, type Reason } from '../events/timeline.js';
import { transition } from './transitions.js';
import { canRelease } from './release.js';

/** Moves an instance from `running` to `stopping` and commands the stop. While payments are frozen, it also releases the GPUs. */
export function requestStop(tx: Tx, instance: Instance, reason: Reason, by: Actor = SYSTEM): Instance {
  const isFrozen = getOrganization(tx, instance.organization_id).payments_frozen_at !== null;
  const releases = isFrozen && canRelease(tx, instance);
  const release = releases
    ? { gpu_release: 'pending' as const, gpu_release_requested_at: tx.now }
    : { gpu_release: null, gpu_release_requested_at: null };
  const stopping = transition(tx, instance, 'stopping', reason, release);
  recordInstanceAct(tx, instance, by, 'instance.stop', reason);
  return recordCommand(tx, stopping, releases ? 'release' : 'stop').instance;
}

/** Moves an instance to `destroying` from any status but `destroyed` and commands the destroy, also again while `destroying`. */
export function requestDestroy(tx: Tx, instance: Instance, reason: Reason, by: Actor = SYSTEM): Instance {
  const isRepeated = instance.status === 'destroying';
  if (isRepeated) recordNote(tx, instance.id, reason.kind, reason.message);
  const next = isRepeated ? instance : transition(tx, instance, 'destroying', reason);
  recordInstanceAct(tx, instance, by, 'instance.destroy', reason);
  tx.nudge('lost-machines');
  return recordCommand(tx, next, 'destroy').instance;
}

/** Records who starts, stops or destroys an instance; of the control plane itself, also the kind of the event that says why. */
export function recordInstanceAct(
  tx: Tx,
  { id, organization_id }: Pick<Instance, 'id' | 'organization_id'>,
  by: Actor,
  action: Extract<Act, `instance.${string}`>,
  reason: Reason,
): void {
  const why = by.kind === 'system' ? reason.kind : by.reason;
  recordAct(tx, organization_id, by, action, `instances/${id}`, why);
}
