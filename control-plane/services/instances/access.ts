import { createHash } from 'node:crypto';
import type { Ids } from '../../../shared/ids.js';
import type { Access, CommandResult } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Caller } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import { findAttachableKey } from '../accounts/ssh-keys.js';
import { findMachineRow } from '../hosts/machines.js';
import type { Platform } from '../platform.js';
import type { Sealer } from '../sealer.js';
import { findOpenChange, finishCommand, recordCommand, type CommandRow } from './commands.js';
import { getOwnInstance, type Instance } from './queries.js';
import { describeInstance, type InstanceDetails } from './read.js';
import { amend, recordEvent } from './transitions.js';
import { ACCESS_TOKEN_PURPOSE, openWorkload, sealWorkload, type Workload } from './workload.js';

const KEY_STAYS =
  'the host takes only the new access token; the SSH key stays, for the container was made by an older agent: to end it, destroy the instance and deploy again';

/**
 * Gives a running or stopped instance a new access token, and in the place of its SSH key the one that `ssh_key_id` names; null:
 * the key stays. Recorded first, sent afterwards; a stopped one takes them when it starts. Refuses with INSTANCE_NOT_FOUND,
 * INVALID_STATE, ACCESS_UNSUPPORTED, SSH_KEY_NOT_FOUND, and VALIDATION_FAILED where there is nothing to replace.
 */
export function replaceAccess(
  platform: Platform,
  caller: Caller,
  id: string,
  request: { ssh_key_id: string | null },
): InstanceDetails {
  const { ids, sealer } = platform;
  return platform.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    checkReplaceable(tx, instance);
    const key = request.ssh_key_id === null ? null : findAttachableKey(tx, caller, request.ssh_key_id);
    const before = workloadOf(sealer, instance);
    checkWorkload(before, key !== null);
    const workload = withToken(before, ids.hex(24));
    const after = key ? { ...workload, sshAuthorizedKey: key.public_key } : workload;
    const replaced = amend(tx, instance, {
      workload_sealed: sealWorkload(sealer, after),
      access_token_sealed: after.accessToken === '' ? null : sealer.seal(ACCESS_TOKEN_PURPOSE, after.accessToken),
      access_revision: instance.access_revision + 1,
      access_replacement: 'pending',
    });
    recordEvent(tx, id, 'access_requested', requestedWords(after.accessToken !== '', key?.name));
    return describeInstance(platform, tx, tellHost(tx, ids, replaced));
  });
}

function checkReplaceable(tx: Tx, { status, machine_id }: Instance): void {
  if (status !== 'running' && status !== 'stopped')
    throw new Refusal('INVALID_STATE', `the instance is ${status}; its access cannot be replaced now`);
  if (findMachineRow(tx, machine_id).access_replaceable === 1) return;
  throw new Refusal(
    'ACCESS_UNSUPPORTED',
    'the agent of this machine is too old to replace access; destroy the instance and deploy again',
  );
}

function checkWorkload({ accessToken, sshAuthorizedKey, virtualMachine }: Workload, hasKey: boolean): void {
  if (!hasKey && accessToken === '')
    throw invalidField('ssh_key_id', 'is missing: this instance has no access token to replace, only an SSH key');
  if (hasKey && virtualMachine)
    throw invalidField('ssh_key_id', 'must be null: the keys of a virtual machine are replaced inside of it');
  if (hasKey && sshAuthorizedKey === '')
    throw invalidField(
      'ssh_key_id',
      'must be null: this instance was deployed without an SSH key, and has no SSH port',
    );
}

function requestedWords(hasToken: boolean, keyName: string | undefined): string {
  const parts = [...(hasToken ? ['a new access token'] : []), ...(keyName ? [`the SSH key "${keyName}"`] : [])];
  return `${parts.join(' and ')} in place of what was there; the host is told`;
}

function workloadOf(sealer: Sealer, { id, workload_sealed }: Instance): Workload {
  if (!workload_sealed) throw new Error(`instance ${id} has nothing to run`);
  return openWorkload(sealer, workload_sealed);
}

/** Also in every variable that carries it. */
function withToken(workload: Workload, token: string): Workload {
  const { accessToken: before, env } = workload;
  if (before === '') return workload;
  const replaced = env.map(({ key, value }) => ({ key, value: value.replaceAll(before, token) }));
  return { ...workload, accessToken: token, env: replaced };
}

/** What does not run gets it with its next start; a stop that is still being tried goes on, and brings it along. */
function tellHost(tx: Tx, ids: Ids, instance: Instance): Instance {
  if (instance.status !== 'running') return instance;
  return recordCommand(tx, ids, instance, findOpenChange(tx, instance)?.kind ?? 'access').instance;
}

/**
 * Has the host of an adopted instance take the access that the store has for it, for what was in force there nobody knows; nothing
 * where the instance has no access token, or the agent is too old.
 */
export function renewAccess(tx: Tx, ids: Ids, instance: Instance): Instance {
  const { access_token_sealed, machine_id, access_revision } = instance;
  if (access_token_sealed === null || findMachineRow(tx, machine_id).access_replaceable === 0) return instance;
  const renewed = amend(tx, instance, { access_revision: access_revision + 1, access_replacement: 'pending' });
  return tellHost(tx, ids, renewed);
}

/** Returns what a host is told with each command of an instance whose access was ever replaced. */
export function accessOf({ sealer }: Platform, instance: Instance | undefined): Access | undefined {
  if (!instance?.workload_sealed || instance.access_revision === 0) return undefined;
  const { accessToken, sshAuthorizedKey, env } = workloadOf(sealer, instance);
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
