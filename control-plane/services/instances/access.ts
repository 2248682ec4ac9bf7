import { createHash } from 'node:crypto';
import type { Access, CommandResult } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Tx } from '../../store/store.js';
import { findMachineRow } from '../machines/machines.js';
import { fingerprintOf } from '../organizations/ssh-public-key.js';
import type { Core } from '../system/platform.js';
import type { Encryption } from '../secrets/encryption.js';
import { findOpenChange, finishCommand, recordCommand, type CommandRow } from './commands.js';
import { type Instance } from './queries.js';
import { amend } from './transitions.js';
import { decryptWorkload, type Workload } from './workload.js';
import { recordNote } from '../events/timeline.js';

const KEY_STAYS =
  'the host accepts only the new access token, but still the old SSH key, because an older agent made the container; to end that key, destroy the instance and deploy again';

/** Decrypts what an instance runs. Throws an Error for a destroyed instance, which has no workload any more. */
export function workloadOf(encryption: Encryption, { id, workload_encrypted }: Instance): Workload {
  if (!workload_encrypted) throw new Error(`instance ${id} has no workload any more`);
  return decryptWorkload(encryption, workload_encrypted);
}

/**
 * Records a command that takes the present access to the host of a running instance. An open command, such as a stop that timed out, is
 * recorded again instead, because each command carries the access. An instance that does not run gets it with its next start.
 */
export function tellHost(tx: Tx, instance: Instance): Instance {
  if (instance.status !== 'running') return instance;
  return recordCommand(tx, instance, findOpenChange(tx, instance)?.kind ?? 'access').instance;
}

/**
 * Makes the host of an adopted instance replace its access by the one in the database, because nobody knows which access was in force.
 * Does nothing if the instance has no access token or its agent is too old.
 */
export function renewAccess(tx: Tx, instance: Instance): Instance {
  const { access_token_encrypted, machine_id, access_revision } = instance;
  if (access_token_encrypted === null || findMachineRow(tx, machine_id).access_replaceable === 0) return instance;
  const renewed = amend(tx, instance, { access_revision: access_revision + 1, access_replacement: 'pending' });
  return tellHost(tx, renewed);
}

/** Returns the access that each command of the instance carries; undefined if its access was never replaced. */
export function accessOf({ encryption }: Core, instance: Instance | undefined): Access | undefined {
  if (!instance?.workload_encrypted || instance.access_revision === 0) return undefined;
  const { accessToken, sshAuthorizedKey, env } = workloadOf(encryption, instance);
  return {
    revision: instance.access_revision,
    tokenHash: accessToken === '' ? '' : createHash('sha256').update(accessToken).digest('hex'),
    sshAuthorizedKey,
    env: accessToken === '' ? [] : env.filter(({ value }) => value.includes(accessToken)),
  };
}

/** Records a host's confirmation, with the result of a command, that the present access is in force. */
export function noteAccess(
  { encryption }: Core,
  tx: Tx,
  instance: Instance,
  { accessRevision, sshKeyStays }: CommandResult,
): Instance {
  if (instance.access_replacement !== 'pending' && instance.access_replacement !== 'refused') return instance;
  if (accessRevision !== instance.access_revision) return instance;
  const words = 'the host accepts only the new access token and SSH key';
  recordNote(tx, instance.id, 'access_replaced', sshKeyStays ? KEY_STAYS : words);
  if (sshKeyStays) return amend(tx, instance, { access_replacement: 'token_only' });
  const ssh_key_fingerprint = fingerprintOf(workloadOf(encryption, instance).sshAuthorizedKey);
  return amend(tx, instance, { access_replacement: 'applied', ssh_key_fingerprint });
}

/** Records that a host has refused to replace access: the old access is still in force there. */
export function refuseAccess(
  tx: Tx,
  instance: Instance,
  command: CommandRow,
  reason: { code: string; message: string },
): void {
  finishCommand(tx, command, 'refused', reason);
  amend(tx, instance, { access_replacement: 'refused' });
  recordNote(tx, instance.id, 'access_refused', `the host still accepts the old access: ${reason.message}`);
}
