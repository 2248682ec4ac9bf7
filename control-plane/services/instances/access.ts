import { createHash } from 'node:crypto';
import type { Access, CommandResult } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Tx } from '../../store/store.js';
import { findMachineRow } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';
import type { Encryption } from '../secrets/encryption.js';
import { findOpenChange, finishCommand, recordCommand, type CommandRow } from './commands.js';
import { type Instance } from './queries.js';
import { amend } from './transitions.js';
import { decryptWorkload, type Workload } from './workload.js';
import { recordEvent } from '../system/timeline.js';

const KEY_STAYS =
  'the host takes only the new access token; the SSH key stays, for the container was made by an older agent: to end it, destroy the instance and deploy again';

export function workloadOf(encryption: Encryption, { id, workload_encrypted }: Instance): Workload {
  if (!workload_encrypted) throw new Error(`instance ${id} has nothing to run`);
  return decryptWorkload(encryption, workload_encrypted);
}

/** What does not run gets it with its next start; a stop that is still being tried goes on, and brings it along. */
export function tellHost(tx: Tx, instance: Instance): Instance {
  if (instance.status !== 'running') return instance;
  return recordCommand(tx, instance, findOpenChange(tx, instance)?.kind ?? 'access').instance;
}

/**
 * Has the host of an adopted instance take the access that the store has for it, for what was in force there nobody knows; nothing
 * where the instance has no access token, or the agent is too old.
 */
export function renewAccess(tx: Tx, instance: Instance): Instance {
  const { access_token_encrypted, machine_id, access_revision } = instance;
  if (access_token_encrypted === null || findMachineRow(tx, machine_id).access_replaceable === 0) return instance;
  const renewed = amend(tx, instance, { access_revision: access_revision + 1, access_replacement: 'pending' });
  return tellHost(tx, renewed);
}

/** Returns what a host is told with each command of an instance whose access was ever replaced. */
export function accessOf({ encryption }: Platform, instance: Instance | undefined): Access | undefined {
  if (!instance?.workload_encrypted || instance.access_revision === 0) return undefined;
  const { accessToken, sshAuthorizedKey, env } = workloadOf(encryption, instance);
  return {
    revision: instance.access_revision,
    tokenHash: accessToken === '' ? '' : createHash('sha256').update(accessToken).digest('hex'),
    sshAuthorizedKey,
    env: accessToken === '' ? [] : env.filter(({ value }) => value.includes(accessToken)),
  };
}

/** A host has done a command, and says which access is in force. */
export function noteAccess(tx: Tx, instance: Instance, { accessRevision, sshKeyStays }: CommandResult): Instance {
  if (instance.access_replacement !== 'pending' && instance.access_replacement !== 'refused') return instance;
  if (accessRevision !== instance.access_revision) return instance;
  const words = 'the host takes only the new access token and SSH key';
  recordEvent(tx, instance.id, 'access_replaced', sshKeyStays ? KEY_STAYS : words);
  return amend(tx, instance, { access_replacement: sshKeyStays ? 'token_only' : 'applied' });
}

/** A host does not replace access, whatever it has said of itself: what was replaced is still in force there. */
export function refuseAccess(
  tx: Tx,
  instance: Instance,
  command: CommandRow,
  reason: { code: string; message: string },
): void {
  finishCommand(tx, command, 'refused', reason);
  amend(tx, instance, { access_replacement: 'refused' });
  recordEvent(tx, instance.id, 'access_refused', `the host still takes the old access: ${reason.message}`);
}
