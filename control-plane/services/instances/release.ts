import type { Tx } from '../../store/store.js';
import { findMachineRow } from '../machines/machines.js';
import { getOrganization } from '../organizations/organizations.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import { findOpenCommand, recordCommand } from './commands.js';
import type { Instance } from './queries.js';
import { amend } from './transitions.js';
import { recordNote } from '../events/timeline.js';

/** Tells whether the host can detach GPUs from a stopped workload and attach them again. Never true for a virtual machine. */
export function canRelease(tx: Tx, instance: Instance): boolean {
  const { kind } = readTemplateSnapshot(instance.template_snapshot);
  return kind !== 'vm' && findMachineRow(tx, instance.machine_id).gpu_release_supported === 1;
}

/**
 * Releases the GPUs of a stopped instance if payments are frozen, the balance is at or below zero, or the time that its offer allows
 * is over. Must be called on every entry into `stopped` and whenever one of these reasons arises. `gpu_release` becomes `pending`
 * until the host confirms, or `unsupported` if the host cannot release them. Returns the instance as it is then.
 */
export function considerRelease(tx: Tx, instance: Instance): Instance {
  const decided = instance.gpus_released === 1 || instance.gpu_release === 'unsupported';
  if (instance.status !== 'stopped' || decided || !mustRelease(tx, instance)) return instance;
  const requested = { gpu_release_requested_at: instance.gpu_release_requested_at ?? tx.now };
  if (!canRelease(tx, instance)) {
    recordNote(tx, instance.id, 'release_unsupported', 'the machine cannot release the GPUs; they stay reserved');
    return amend(tx, instance, { gpu_release: 'unsupported', ...requested });
  }
  const pending = amend(tx, instance, { gpu_release: 'pending', ...requested });
  if (findOpenCommand(tx, instance)?.kind === 'release') return pending;
  recordNote(tx, instance.id, 'release_requested', 'the GPUs are released; container and disk stay');
  return recordCommand(tx, pending, 'release').instance;
}

function mustRelease(tx: Tx, instance: Instance): boolean {
  const { payments_frozen_at, balance_micro } = getOrganization(tx, instance.organization_id);
  const isHeldTooLong = instance.release_gpus_at !== null && instance.release_gpus_at <= tx.now;
  return payments_frozen_at !== null || balance_micro <= 0 || isHeldTooLong;
}

/** Records a compensating command, for an instance that is `stopped` again after a start that can have landed on its host. */
export function undoStart(tx: Tx, stopped: Instance): void {
  const considered = considerRelease(tx, stopped);
  if (findOpenCommand(tx, stopped)?.kind === 'release') return;
  recordCommand(tx, considered, considered.gpus_released ? 'release' : 'stop');
}
