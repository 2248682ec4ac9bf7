import type { AccountCaller, ApiKeyCaller, Caller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { findSession, prolongSession, type FoundSession } from './sessions.js';
import { hashToken } from './tokens.js';

/**
 * Returns the caller that a bearer token belongs to. Refuses with TOKEN_INVALID, the same for a token that is missing, malformed,
 * expired or revoked, and with ORG_MISMATCH, before any other refusal of a valid credential.
 */
export function authenticate(
  platform: Platform,
  token: string | undefined,
  organizationId: string | undefined,
): Caller | AccountCaller {
  if (!token) throw invalidToken();
  const caller = token.startsWith('svc_')
    ? platform.store.transact((tx) => findApiKey(tx, token))
    : findUser(platform, token, organizationId);
  if (!caller) throw invalidToken();
  if (caller.kind === 'api_key') {
    platform.lastUsed.touch(caller.keyId, platform.clock.now());
    if (organizationId !== undefined && organizationId !== caller.organizationId) throw otherOrganization();
  }
  return caller;
}

function invalidToken(): Refusal {
  return new Refusal('TOKEN_INVALID', 'send a valid credential: Authorization: Bearer <token>');
}

function otherOrganization(): Refusal {
  return new Refusal('ORG_MISMATCH', 'X-Org-Id names an organization that this credential does not belong to');
}

function findApiKey(tx: Tx, token: string): ApiKeyCaller | undefined {
  const key = tx.get(
    query
      .selectFrom('api_keys')
      .innerJoin('users', 'users.id', 'api_keys.creator_id')
      .selectAll('api_keys')
      .select('users.email')
      .where('secret_hash', '=', hashToken(token))
      .where('revoked_at', 'is', null),
  );
  if (!key) return undefined;
  return {
    kind: 'api_key',
    keyId: key.id,
    keyKind: key.kind,
    name: key.name,
    prefix: key.prefix,
    creatorId: key.creator_id,
    creatorEmail: key.email,
    organizationId: key.organization_id,
  };
}

function findUser(platform: Platform, token: string, organizationId: string | undefined): AccountCaller | undefined {
  const found = platform.store.transact((tx) => {
    const session = findSession(tx, token);
    return session && { session, caller: userOf(tx, session, organizationId) };
  });
  if (found) prolongSession(platform, found.session);
  return found?.caller;
}

function userOf(tx: Tx, session: FoundSession, organizationId: string | undefined): AccountCaller {
  const memberships = tx.all(
    query
      .selectFrom('memberships')
      .selectAll()
      .where('user_id', '=', session.userId)
      .orderBy('joined_at')
      .orderBy('organization_id'),
  );
  const active =
    organizationId === undefined ? memberships[0] : memberships.find((m) => m.organization_id === organizationId);
  const { id: sessionId, userId, email } = session;
  const user = { sessionId, userId, email, isOperator: session.is_operator === 1 };
  if (active) return { ...user, kind: 'session', organizationId: active.organization_id, role: active.role };
  if (organizationId !== undefined) throw otherOrganization();
  return { ...user, kind: 'no_organization' };
}
