import type { ApiKeyKind, Caller, SessionCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import { checkLimit } from './limits.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';
import { hashToken } from './tokens.js';

const SECRET_PREFIX = 'svc_';
const SECRET_BYTES = 24;
const SHOWN_PREFIX_LENGTH = 12;

export type ApiKeyDetails = Row<'api_keys'> & { creator_email: string; creator_is_member: boolean };

/**
 * Creates an API key. Only this answer has the secret. Refuses a team key of a member who is not an admin (ADMIN_REQUIRED), and
 * more than 200 active keys in an organization (LIMIT_REACHED).
 */
export function createApiKey(
  platform: Platform,
  caller: SessionCaller,
  request: { name: string; kind: ApiKeyKind },
): { key: ApiKeyDetails; secret: string } {
  if (request.kind === 'team' && caller.role !== 'admin') {
    throw new Refusal('ADMIN_REQUIRED', 'only an admin of the organization can create a team key');
  }
  const secret = SECRET_PREFIX + platform.ids.hex(SECRET_BYTES);
  return platform.store.transact((tx) => {
    const row: Row<'api_keys'> = {
      id: tx.id(),
      organization_id: caller.organizationId,
      creator_id: caller.userId,
      name: request.name,
      kind: request.kind,
      prefix: secret.slice(0, SHOWN_PREFIX_LENGTH),
      secret_hash: hashToken(secret),
      created_at: tx.now,
      last_used_at: null,
      revoked_at: null,
    };
    checkLimit(tx, 'apiKeys', activeKeys(caller.organizationId));
    tx.run(query.insertInto('api_keys').values(row));
    tell(tx, 'api_key.created', row);
    return { key: { ...row, creator_email: caller.email, creator_is_member: true }, secret };
  });
}

/** Lists the active API keys of the caller's organization, newest first. */
export function listApiKeys(platform: Platform, caller: Caller, request: PageRequest): Page<ApiKeyDetails> {
  const { items, ...rest } = platform.store.transact((tx) =>
    pageOf(
      tx,
      query
        .selectFrom('api_keys')
        .innerJoin('users', 'users.id', 'api_keys.creator_id')
        .leftJoin('memberships', (join) =>
          join
            .onRef('memberships.organization_id', '=', 'api_keys.organization_id')
            .onRef('memberships.user_id', '=', 'api_keys.creator_id'),
        )
        .selectAll('api_keys')
        .select(['users.email as creator_email', 'memberships.user_id as member_id'])
        .select(sql<number>`api_keys.rowid`.as('position'))
        .where('api_keys.organization_id', '=', caller.organizationId)
        .where('revoked_at', 'is', null),
      request,
      {
        by: { 'api_keys.created_at': 'desc', 'api_keys.rowid': 'desc' },
        keyOf: ({ created_at, position }) => [created_at, position],
      },
    ),
  );
  const keys = items.map(({ member_id, position: _, ...row }) => ({
    ...row,
    last_used_at: platform.lastUsed.latest(row.id, row.last_used_at),
    creator_is_member: member_id !== null,
  }));
  return { ...rest, items: keys };
}

/**
 * Revokes a key from its next request on; the instances that it deployed stay. An admin can revoke any key of the organization, a
 * member only its own personal keys (otherwise ADMIN_REQUIRED). Refuses with API_KEY_NOT_FOUND for any other key.
 */
export function revokeApiKey(platform: Platform, caller: SessionCaller, keyId: string): void {
  platform.store.transact((tx) => {
    const key = findActiveKey(tx, caller.organizationId, keyId);
    if (!key) throw new Refusal('API_KEY_NOT_FOUND', 'no active API key of this organization has this id');
    const own = key.kind === 'personal' && key.creator_id === caller.userId;
    if (caller.role !== 'admin' && !own) {
      throw new Refusal(
        'ADMIN_REQUIRED',
        'a member can revoke only their own personal keys; ask an admin of the organization',
      );
    }
    revoke(tx, [key]);
  });
}

/** Returns how many active API keys a user has created, in all organizations. */
export function countKeysOf(platform: Platform, creatorId: string): number {
  const keys = query.selectFrom('api_keys').select(({ fn }) => fn.countAll<number>().as('count'));
  const active = keys.where('creator_id', '=', creatorId).where('revoked_at', 'is', null);
  return platform.store.transact((tx) => tx.get(active)?.count ?? 0);
}

/** Revokes the active keys that a user has created: all, or the personal ones in one organization. */
export function revokeKeysOf(tx: Tx, creatorId: string, personalIn?: string): void {
  const keys = query.selectFrom('api_keys').selectAll().where('creator_id', '=', creatorId);
  const active = keys.where('revoked_at', 'is', null);
  if (personalIn === undefined) return revoke(tx, tx.all(active));
  revoke(tx, tx.all(active.where('organization_id', '=', personalIn).where('kind', '=', 'personal')));
}

function revoke(tx: Tx, keys: readonly Row<'api_keys'>[]): void {
  for (const key of keys) {
    tx.run(query.updateTable('api_keys').set({ revoked_at: tx.now }).where('id', '=', key.id));
    tell(tx, 'api_key.revoked', key);
  }
}

function tell(tx: Tx, type: 'api_key.created' | 'api_key.revoked', key: Row<'api_keys'>): void {
  const { id, organization_id, name, kind, prefix } = key;
  recordEvent(tx, organization_id, type, `api-keys/${id}`, { api_key_id: id, name, kind, prefix });
}

function activeKeys(organizationId: string) {
  return query
    .selectFrom('api_keys')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null);
}

function findActiveKey(tx: Tx, organizationId: string, keyId: string): Row<'api_keys'> | undefined {
  return tx.get(
    query
      .selectFrom('api_keys')
      .selectAll()
      .where('id', '=', keyId)
      .where('organization_id', '=', organizationId)
      .where('revoked_at', 'is', null),
  );
}
