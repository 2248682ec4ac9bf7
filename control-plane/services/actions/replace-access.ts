import { actorOf } from '../../domain/act.js';
import type { Caller } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import { findAttachableKey } from '../organizations/ssh-keys.js';
import { findMachineRow } from '../machines/machines.js';
import { recordAct } from '../system/acts.js';
import type { Platform } from '../system/platform.js';
import { getOwnInstance, type Instance } from '../instances/queries.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';
import { amend } from '../instances/transitions.js';
import { encryptWorkload, type Workload } from '../instances/workload.js';
import { recordNote } from '../events/timeline.js';
import { workloadOf, tellHost } from '../instances/access.js';

/**
 * Replaces the access token of a running or stopped instance, and its SSH key by the one of `ssh_key_id`; null keeps the key. A host
 * gets the change by a command, or with the next start of a stopped instance. Refuses with INSTANCE_NOT_FOUND, INVALID_STATE,
 * ACCESS_UNSUPPORTED, SSH_KEY_NOT_FOUND, and with VALIDATION_FAILED if nothing can be replaced.
 */
export function replaceAccess(
  platform: Platform,
  caller: Caller,
  id: string,
  request: { ssh_key_id: string | null },
): InstanceDetails {
  const { ids, encryption } = platform;
  return platform.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    checkReplaceable(tx, instance);
    const key = request.ssh_key_id === null ? null : findAttachableKey(tx, caller, request.ssh_key_id);
    const before = workloadOf(encryption, instance);
    checkWorkload(before, key !== null);
    const workload = withToken(before, ids.hex(24));
    const after = key ? { ...workload, sshAuthorizedKey: key.public_key } : workload;
    const replaced = amend(tx, instance, {
      workload_encrypted: encryptWorkload(encryption, after),
      access_token_encrypted:
        after.accessToken === '' ? null : encryption.encrypt('instance.access_token', after.accessToken),
      access_revision: instance.access_revision + 1,
      access_replacement: 'pending',
    });
    recordNote(tx, id, 'access_requested', requestedWords(after.accessToken !== '', key?.name));
    recordAct(tx, caller.organizationId, actorOf(caller), 'instance.access', `instances/${id}`);
    return describeInstance(platform, tx, tellHost(tx, replaced));
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
    throw invalidField('ssh_key_id', 'is required: this instance has no access token to replace, only an SSH key');
  if (hasKey && virtualMachine)
    throw invalidField('ssh_key_id', 'must be null: replace the SSH keys of a virtual machine inside it');
  if (hasKey && sshAuthorizedKey === '')
    throw invalidField(
      'ssh_key_id',
      'must be null: this instance was deployed without an SSH key, and has no SSH port',
    );
}

function requestedWords(hasToken: boolean, keyName: string | undefined): string {
  const parts = [...(hasToken ? ['a new access token'] : []), ...(keyName ? [`the SSH key "${keyName}"`] : [])];
  return `the host is told to accept only ${parts.join(' and ')} from now on`;
}

/** Replaces the access token, also in every variable that contains it. */
function withToken(workload: Workload, token: string): Workload {
  const { accessToken: before, env } = workload;
  if (before === '') return workload;
  const replaced = env.map(({ key, value }) => ({ key, value: value.replaceAll(before, token) }));
  return { ...workload, accessToken: token, env: replaced };
}
