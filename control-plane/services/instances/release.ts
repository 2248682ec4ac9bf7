import type { Tx } from '../../store/store.js';
import { findMachineRow } from '../machines/machines.js';
import { getOrganization } from '../accounts/organizations.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import { findOpenCommand, recordCommand } from './commands.js';
import type { Instance } from './queries.js';
import { amend } from './transitions.js';
import { recordEvent } from '../system/timeline.js';

/** Whether the host can take the GPUs out of a stopped workload and give them back: never those of a virtual machine. */
export function canRelease(tx: Tx, instance: Instance): boolean {
  const { kind } = readTemplateSnapshot(instance.template_snapshot);
  return kind !== 'vm' && findMachineRow(tx, instance.machine_id).gpu_release_supported === 1;
}

/**
 * Decides, on every entry into `stopped`, whenever payments freeze or the balance runs out, and when the instance has held them
 * for as long as its offer lets it, whether the GPUs go back to the market: `pending` until the host confirms, `unsupported` where it cannot.
 */
export function considerRelease(tx: Tx, instance: Instance): Instance {
  const decided = instance.gpus_released === 1 || instance.gpu_release === 'unsupported';
  if (instance.status !== 'stopped' || decided || !mustRelease(tx, instance)) return instance;
  const requested = { gpu_release_requested_at: instance.gpu_release_requested_at ?? tx.now };
  if (!canRelease(tx, instance)) {
    recordEvent(tx, instance.id, 'release_unsupported', 'the machine cannot release the GPUs; they stay reserved');
    return amend(tx, instance, { gpu_release: 'unsupported', ...requested });
  }
  const pending = amend(tx, instance, { gpu_release: 'pending', ...requested });
  if (findOpenCommand(tx, instance)?.kind === 'release') return pending;
  recordEvent(tx, instance.id, 'release_requested', 'the GPUs go back to the machine; container and disk stay');
  return recordCommand(tx, pending, 'release').instance;
}

function mustRelease(tx: Tx, instance: Instance): boolean {
  const { payments_frozen_at, balance_micro } = getOrganization(tx, instance.organization_id);
  const isHeldTooLong = instance.release_gpus_at !== null && instance.release_gpus_at <= tx.now;
  return payments_frozen_at !== null || balance_micro <= 0 || isHeldTooLong;
}

/** Makes sure that nothing of a start that was given up goes on on the host: the instance is `stopped` again. */
export function undoStart(tx: Tx, stopped: Instance): void {
  const considered = considerRelease(tx, stopped);
  if (findOpenCommand(tx, stopped)?.kind === 'release') return;
  recordCommand(tx, considered, considered.gpus_released ? 'release' : 'stop');
}
