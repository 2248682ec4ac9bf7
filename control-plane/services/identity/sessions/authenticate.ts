import { isIP } from 'node:net';
import type { AccountCaller, ApiKeyCaller, Caller, SessionCaller } from '../../../domain/caller.js';
import { networkOf } from '../../../domain/network.js';
import { Refusal } from '../../../domain/refusal.js';
import { Remembered } from '../../../store/remembered.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core, Platform } from '../../system/platform.js';
import { isAllowedAddress, readAllowedAddresses } from '../../organizations/keys/allowed-addresses.js';
import { findSession, prolongSession, type FoundSession } from './sessions.js';
import { hashToken } from '../../secrets/tokens.js';

/** The credentials that are remembered at once: those of busy clients. */
const MOST_CREDENTIALS = 10_000;

/** A session with what its user may do, or an API key. */
type Credential =
  | { kind: 'key'; userId: string; key: ApiKeyCaller; terms: KeyTerms }
  | { kind: 'session'; userId: string; session: FoundSession; callers: SessionCallers };

/** Until when and from where a key can be used; null: for ever, and from everywhere. */
interface KeyTerms {
  expiresAt: number | null;
  allowedAddresses: readonly string[] | null;
}

export interface HasCredentials {
  credentials: Remembered<Credential>;
}

/** Makes the memory of credentials by the hash of their token, each remembered until a row changes that says what it may do. */
export function makeCredentials({ store }: Pick<Core, 'store'>): Remembered<Credential> {
  const credentials = new Remembered(store, MOST_CREDENTIALS, (hash) =>
    store.transact((tx) => readCredential(tx, hash)),
  );
  const forget = (hash: string) => credentials.forget(hash);
  store.onChange('api_keys', forget);
  store.onChange('sessions', forget);
  const forgetUser = (id: string) => credentials.forgetIf(({ userId }) => userId === id);
  store.onChange('memberships', forgetUser);
  store.onChange('users', forgetUser);
  store.onChange('organizations', (id) =>
    credentials.forgetIf((found) => found.kind === 'session' && found.callers.ofOrganization.has(id)),
  );
  return credentials;
}

function readCredential(tx: Tx, hash: string): Credential | undefined {
  const found = findApiKey(tx, hash);
  if (found) return { kind: 'key', userId: found.key.creatorId, ...found };
  const session = findSession(tx, hash);
  return session && { kind: 'session', userId: session.userId, session, callers: callersOf(tx, session) };
}

/**
 * Returns the caller that a token belongs to, and records its use from this IP address of the client. Refuses with TOKEN_INVALID, the same
 * for a token that is missing, malformed, expired or revoked; then with API_KEY_ADDRESS, which tells nothing of the key; then with
 * ORG_MISMATCH, before any other refusal of a valid credential.
 */
export function authenticate(
  platform: Platform & HasCredentials,
  token: string | undefined,
  organizationId: string | undefined,
  address: string,
): Caller | AccountCaller {
  const credential = validCredential(platform, token, address);
  const at = platform.clock.now();
  if (credential.kind === 'session') {
    prolongSession(platform, credential.session);
    platform.lastUsed.touchSession(credential.session.id, { at, network: networkOf(address) });
  } else platform.lastUsed.touch(credential.key.keyId, at);
  return callerOf(credential, organizationId);
}

/** Returns the caller of a token like {@link authenticate}, but this is no use of it: it prolongs no session. */
export function identifyCaller(
  platform: Platform & HasCredentials,
  token: string | undefined,
  organizationId: string | undefined,
  address: string,
): Caller | AccountCaller {
  return callerOf(validCredential(platform, token, address), organizationId);
}

/** Returns the session of a token, without a use of it; undefined: there is none, or it has ended. */
export function findSessionOf(
  { credentials, clock }: Platform & HasCredentials,
  token: string,
): FoundSession | undefined {
  const credential = credentials.of(hashToken(token));
  if (credential?.kind !== 'session' || credential.session.expires_at <= clock.now()) return undefined;
  return credential.session;
}

/**
 * Calls `listener` when what a credential may do can have changed, with the hash of its token, or the id of its user
 * or organization.
 */
export function onCredentialChange({ store }: Pick<Core, 'store'>, listener: (key: string) => void): void {
  for (const table of ['api_keys', 'sessions', 'memberships', 'users', 'organizations'] as const)
    store.onChange(table, listener);
}

function validCredential(
  platform: Pick<Core, 'clock'> & HasCredentials,
  token: string | undefined,
  address: string,
): Credential {
  const credential = token ? platform.credentials.of(hashToken(token)) : undefined;
  if (!credential) throw invalidToken();
  const endsAt = credential.kind === 'session' ? credential.session.expires_at : credential.terms.expiresAt;
  if (endsAt !== null && endsAt <= platform.clock.now()) throw invalidToken();
  if (credential.kind === 'key') checkAddress(credential.terms, address);
  return credential;
}

function checkAddress({ allowedAddresses }: KeyTerms, address: string): void {
  if (allowedAddresses === null) return;
  if (isAllowedAddress(allowedAddresses, address)) return;
  const from = isIP(address) === 0 ? 'an address that is unknown' : address;
  throw new Refusal(
    'API_KEY_ADDRESS',
    `this API key cannot be used from this address: the request came from ${from}; send it from one that the key allows`,
  );
}

function callerOf(credential: Credential, organizationId: string | undefined): Caller | AccountCaller {
  if (credential.kind === 'session') {
    const { first, ofOrganization } = credential.callers;
    const caller = organizationId === undefined ? first : ofOrganization.get(organizationId);
    if (!caller) throw otherOrganization();
    return caller;
  }
  const { key } = credential;
  if (organizationId !== undefined && organizationId !== key.organizationId) throw otherOrganization();
  return key;
}

function invalidToken(): Refusal {
  return new Refusal('TOKEN_INVALID', 'send a valid credential: Authorization: Bearer <token>');
}

function otherOrganization(): Refusal {
  return new Refusal('ORG_MISMATCH', 'X-Org-Id names an organization that this credential does not belong to');
}

function findApiKey(tx: Tx, hash: string): { key: ApiKeyCaller; terms: KeyTerms } | undefined {
  const row = tx.get(
    query
      .selectFrom('api_keys')
      .innerJoin('users', 'users.id', 'api_keys.creator_id')
      .selectAll('api_keys')
      .select('users.email')
      .where('secret_hash', '=', hash)
      .where('revoked_at', 'is', null),
  );
  if (!row) return undefined;
  const key: ApiKeyCaller = {
    kind: 'api_key',
    keyId: row.id,
    keyKind: row.kind,
    isReadOnly: row.read_only === 1,
    name: row.name,
    prefix: row.prefix,
    creatorId: row.creator_id,
    creatorEmail: row.email,
    organizationId: row.organization_id,
  };
  return { key, terms: { expiresAt: row.expires_at, allowedAddresses: readAllowedAddresses(row.allowed_addresses) } };
}

interface SessionCallers {
  /** The caller of a request that names no organization. */
  first: AccountCaller;
  ofOrganization: ReadonlyMap<string, AccountCaller>;
}

function callersOf(tx: Tx, { id: sessionId, userId, email, is_operator, factor_at }: FoundSession): SessionCallers {
  const memberships = tx.all(
    query
      .selectFrom('memberships')
      .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
      .select(['organization_id', 'role', 'second_factor_since'])
      .where('user_id', '=', userId)
      .orderBy('joined_at')
      .orderBy('organization_id'),
  );
  const isWithFactor = factor_at !== null;
  const user = { sessionId, userId, email, isOperator: is_operator === 1, isWithFactor };
  const callers = memberships.map(({ organization_id, role, second_factor_since }): SessionCaller => ({
    ...user,
    kind: 'session',
    organizationId: organization_id,
    role,
    lacksFactor: second_factor_since !== null && !isWithFactor,
  }));
  return {
    first: callers[0] ?? { ...user, kind: 'no_organization' },
    ofOrganization: new Map(callers.map((caller) => [caller.organizationId, caller])),
  };
}
