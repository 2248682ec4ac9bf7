import { rolesWith, type AccountCaller, type Caller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { checkLimit } from '../system/row-limits.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core } from '../system/platform.js';
import { parseSshPublicKey } from './ssh-public-key.js';

export type SshKeyDetails = Row<'ssh_keys'>;

/** Adds an SSH key to the caller's. Refuses with VALIDATION_FAILED (unusable key), SSH_KEY_EXISTS and LIMIT_REACHED. */
export function addSshKey(
  core: Core,
  caller: AccountCaller,
  request: { name: string; public_key: string },
): Row<'ssh_keys'> {
  const { line, fingerprint } = parseSshPublicKey(request.public_key);
  return core.store.transact((tx) => {
    const known = query
      .selectFrom('ssh_keys')
      .select('name')
      .where('user_id', '=', caller.userId)
      .where('fingerprint', '=', fingerprint);
    const existing = tx.get(known);
    if (existing) throw new Refusal('SSH_KEY_EXISTS', `you have this key already, under the name "${existing.name}"`);
    checkLimit(tx, 'sshKeys', query.selectFrom('ssh_keys').select('id').where('user_id', '=', caller.userId));
    const row = {
      id: tx.id(),
      user_id: caller.userId,
      name: request.name,
      public_key: line,
      fingerprint,
      created_at: tx.now,
    };
    tx.run(query.insertInto('ssh_keys').values(row));
    return row;
  });
}

/** Lists the caller's own SSH keys, newest first. */
export function listSshKeys(core: Core, caller: AccountCaller, request: PageRequest): Page<Row<'ssh_keys'>> {
  const keys = query.selectFrom('ssh_keys').selectAll().where('user_id', '=', caller.userId);
  return core.store.transact((tx) => pageOf(tx, keys, request, newestFirst()));
}

/** Deletes an SSH key. Instances that were deployed with it keep it. Refuses with SSH_KEY_NOT_FOUND. */
export function removeSshKey(core: Core, caller: AccountCaller, id: string): void {
  core.store.transact((tx) => {
    const removed = tx.run(query.deleteFrom('ssh_keys').where('id', '=', id).where('user_id', '=', caller.userId));
    if (removed === 0) throw new Refusal('SSH_KEY_NOT_FOUND', 'you have no SSH key with this id');
  });
}

/**
 * Returns the SSH key that a deploy attaches. A session can attach a key of its own user, a personal API key one of its creator,
 * a team key one of any present member of the organization whose role may change instances. Refuses every other key with
 * SSH_KEY_NOT_FOUND.
 */
export function findAttachableKey(tx: Tx, caller: Caller, id: string): Row<'ssh_keys'> {
  const key = tx.get(query.selectFrom('ssh_keys').selectAll().where('id', '=', id));
  if (!key || !mayAttach(tx, caller, key)) {
    throw new Refusal('SSH_KEY_NOT_FOUND', 'ssh_key_id names no SSH key that this credential can attach');
  }
  return key;
}

function mayAttach(tx: Tx, caller: Caller, key: Row<'ssh_keys'>): boolean {
  if (caller.kind === 'session') return key.user_id === caller.userId;
  if (caller.keyKind === 'personal') return key.user_id === caller.creatorId;
  return (
    tx.get(
      query
        .selectFrom('memberships')
        .select('user_id')
        .where('organization_id', '=', caller.organizationId)
        .where('user_id', '=', key.user_id)
        .where('role', 'in', rolesWith('change')),
    ) !== undefined
  );
}
