import { actorOf, type Actor } from '../../../domain/act.js';
import type { ApiKeyKind, Caller, SessionCaller } from '../../../domain/caller.js';
import { Refusal, invalidField } from '../../../domain/refusal.js';
import type { Caps } from '../../../domain/money/spend-cap.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { recordEvent } from '../../events/record.js';
import { faultOfBlock, readAllowedAddresses } from './allowed-addresses.js';
import { capsIn, findCapRows } from './cap-rows.js';
import { recordAct } from '../../system/acts.js';
import { checkLimit } from '../../system/row-limits.js';
import { forEachInOwnTransaction } from '../../system/for-each.js';
import { pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core, Platform } from '../../system/platform.js';
import { hashToken } from '../../secrets/tokens.js';

const SECRET_PREFIX = 'svc_';
const SECRET_BYTES = 24;
const SHOWN_PREFIX_LENGTH = 12;
/** Keys that are ended in one run after they have expired. */
const BATCH = 200;

export type ApiKeyDetails = Omit<Row<'api_keys'>, 'allowed_addresses'> & {
  /** IP addresses and blocks; null: every address is allowed. */
  allowed_addresses: readonly string[] | null;
  creator_email: string;
  creator_is_member: boolean;
  /** What it may spend, in micro-dollars; null: it has no caps. */
  spend_caps: Caps | null;
};

/** What a key is to be. What is absent restricts nothing. */
export interface NewApiKey {
  name: string;
  kind: ApiKeyKind;
  read_only?: boolean;
  /** Addresses and blocks, see {@link faultOfBlock}. */
  allowed_addresses?: readonly string[] | null;
  /** Milliseconds since 1970. */
  expires_at?: number | null;
}

/**
 * Creates an API key. Only this answer has the secret. Refuses a team key of a member who is not an admin (ADMIN_REQUIRED), an
 * unusable address and an end that is not in the future (VALIDATION_FAILED), and more than 200 active keys in an organization
 * (LIMIT_REACHED).
 */
export function createApiKey(
  { ids }: Core,
  tx: Tx,
  caller: SessionCaller,
  { name, kind, read_only = false, allowed_addresses = null, expires_at = null }: NewApiKey,
): { key: ApiKeyDetails; secret: string } {
  if (kind === 'team' && caller.role !== 'admin') {
    throw new Refusal('ADMIN_REQUIRED', 'only an admin of the organization can create a team key');
  }
  allowed_addresses?.forEach((block, index) => {
    const fault = faultOfBlock(block);
    if (fault !== undefined) throw invalidField(`allowed_addresses.${index}`, fault);
  });
  if (expires_at !== null && expires_at <= tx.now) throw invalidField('expires_at', 'must be in the future');
  const secret = SECRET_PREFIX + ids.hex(SECRET_BYTES);
  const row: Row<'api_keys'> = {
    id: tx.id(),
    organization_id: caller.organizationId,
    creator_id: caller.userId,
    name,
    kind,
    prefix: secret.slice(0, SHOWN_PREFIX_LENGTH),
    secret_hash: hashToken(secret),
    created_at: tx.now,
    last_used_at: null,
    revoked_at: null,
    read_only: read_only ? 1 : 0,
    allowed_addresses: allowed_addresses && JSON.stringify(allowed_addresses),
    expires_at,
  };
  checkLimit(tx, 'apiKeys', activeKeys(tx, caller.organizationId).select('api_keys.id'));
  tx.run(query.insertInto('api_keys').values(row));
  tell(tx, 'api_key.created', row);
  recordAct(tx, row.organization_id, actorOf(caller), 'api_key.create', `api-keys/${row.id}`);
  const creator = { creator_email: caller.email, creator_is_member: true };
  return { key: { ...row, allowed_addresses, ...creator, spend_caps: null }, secret };
}

/** Lists the active API keys of the caller's organization, newest first. */
export function listApiKeys(
  platform: Platform,
  caller: Pick<Caller, 'organizationId'>,
  request: PageRequest,
): Page<ApiKeyDetails> {
  const { page, caps } = platform.store.transact((tx) => {
    const page = pageOf(
      tx,
      activeKeys(tx, caller.organizationId)
        .innerJoin('users', 'users.id', 'api_keys.creator_id')
        .leftJoin('memberships', (join) =>
          join
            .onRef('memberships.organization_id', '=', 'api_keys.organization_id')
            .onRef('memberships.user_id', '=', 'api_keys.creator_id'),
        )
        .selectAll('api_keys')
        .select(['users.email as creator_email', 'memberships.user_id as member_id'])
        .select(sql<number>`api_keys.rowid`.as('position')),
      request,
      {
        by: { 'api_keys.created_at': 'desc', 'api_keys.rowid': 'desc' },
        keyOf: ({ created_at, position }) => [created_at, position],
      },
    );
    const ids = page.items.map(({ id }) => id);
    return { page, caps: findCapRows(tx, ids) };
  });
  const keys = page.items.map(({ member_id, position: _, ...row }) => {
    const its = caps.filter(({ owner_id }) => owner_id === row.id);
    return {
      ...row,
      spend_caps: its.length > 0 ? capsIn(its) : null,
      allowed_addresses: readAllowedAddresses(row.allowed_addresses),
      last_used_at: platform.lastUsed.latest(row.id, row.last_used_at),
      creator_is_member: member_id !== null,
    };
  });
  return { ...page, items: keys };
}

/**
 * Revokes a key from its next request on; the instances that it deployed stay. An admin can revoke any key of the organization, a
 * member only its own personal keys (otherwise ADMIN_REQUIRED). Refuses with API_KEY_NOT_FOUND for any other key.
 */
export function revokeApiKey(core: Core, caller: SessionCaller, keyId: string): void {
  core.store.transact((tx) => {
    const key = tx.get(activeKeys(tx, caller.organizationId).selectAll('api_keys').where('api_keys.id', '=', keyId));
    if (!key) throw new Refusal('API_KEY_NOT_FOUND', 'no active API key of this organization has this id');
    const own = key.kind === 'personal' && key.creator_id === caller.userId;
    if (caller.role !== 'admin' && !own) {
      throw new Refusal(
        'ADMIN_REQUIRED',
        'a member can revoke only their own personal keys; ask an admin of the organization',
      );
    }
    revoke(tx, actorOf(caller), [key]);
  });
}

/** Returns how many active API keys a user has created, in all organizations. */
export function countKeysOf(core: Core, creatorId: string): number {
  const keys = query.selectFrom('api_keys').select(({ fn }) => fn.countAll<number>().as('count'));
  const active = keys.where('creator_id', '=', creatorId).where('revoked_at', 'is', null);
  return core.store.transact((tx) => tx.get(active)?.count ?? 0);
}

/** Revokes the active keys that a user has created: all, or the personal ones in one organization. Returns them. */
export function revokeKeysOf(tx: Tx, by: Actor, creatorId: string, personalIn?: string): Row<'api_keys'>[] {
  const keys = query.selectFrom('api_keys').selectAll().where('creator_id', '=', creatorId);
  const active = keys.where('revoked_at', 'is', null);
  if (personalIn === undefined) return revoke(tx, by, tx.all(active));
  return revoke(tx, by, tx.all(active.where('organization_id', '=', personalIn).where('kind', '=', 'personal')));
}

/**
 * Ends API keys that have expired like revoked ones, and so the streams that they have opened. Nobody can use them before that, either.
 * Does nothing while the clock must be confirmed, because an ended key does not come back. Returns the number of keys.
 */
export function expireApiKeys(platform: Platform): { expired: number } {
  if (!platform.clockSteps.isTrusted()) return { expired: 0 };
  const due = platform.store.transact((tx) => tx.all(expiredAt({ now: tx.now })));
  return { expired: forEachInOwnTransaction(platform, due, (tx, key) => end(tx, key, 'api_key.expired')) };
}

const expiredAt = compileOnce(({ now }: { now: number }) =>
  query
    .selectFrom('api_keys')
    .selectAll()
    .where('revoked_at', 'is', null)
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(sql.lit(BATCH)),
);

function revoke(tx: Tx, by: Actor, keys: Row<'api_keys'>[]): Row<'api_keys'>[] {
  for (const key of keys) {
    end(tx, key, 'api_key.revoked');
    recordAct(tx, key.organization_id, by, 'api_key.revoke', `api-keys/${key.id}`);
  }
  return keys;
}

function end(tx: Tx, key: Row<'api_keys'>, type: 'api_key.revoked' | 'api_key.expired'): void {
  tx.run(query.updateTable('api_keys').set({ revoked_at: tx.now }).where('id', '=', key.id));
  tell(tx, type, key);
}

function tell(tx: Tx, type: 'api_key.created' | 'api_key.revoked' | 'api_key.expired', key: Row<'api_keys'>): void {
  const { id, organization_id, name, kind, prefix } = key;
  recordEvent(tx, organization_id, type, `api-keys/${id}`, { api_key_id: id, name, kind, prefix });
}

/** Returns the query of the keys of an organization that are neither revoked nor expired. */
function activeKeys(tx: Tx, organizationId: string) {
  return query
    .selectFrom('api_keys')
    .where('api_keys.organization_id', '=', organizationId)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', tx.now)]));
}
