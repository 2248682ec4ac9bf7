import type { Operator } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { EarlierHost, Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { withFingerprint } from '../../../shared/tls.js';
import { HOUR_MS } from '../../../shared/time.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { addCredential, revoke, type Credential } from './credentials.js';
import { requireNewMachine, type Belongings } from './gpu-owners.js';
import { validateEarlierHosts, validateInventory } from './message-validation.js';
import { saveInventory, updateInventory } from './inventory.js';
import { findMachine } from './machines.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';
import { hashToken } from '../accounts/tokens.js';

export type EnrollmentTokenDetails = Row<'enrollment_tokens'>;

/**
 * Operators: a token with which `max_uses` hosts may enrol, or one known machine anew; shown once, stored as a hash. Where the
 * control plane vouches for itself, the token names its authority. Refuses with MACHINE_NOT_FOUND and VALIDATION_FAILED.
 */
export function createEnrollmentToken(
  platform: Platform,
  operator: Operator,
  request: { max_uses: number; expires_in_hours: number; machine_id?: string },
): Row<'enrollment_tokens'> & { token: string } {
  const secret = `enr_${platform.ids.hex(24)}`;
  const token =
    platform.authorityFingerprint === null ? secret : withFingerprint(secret, platform.authorityFingerprint);
  return platform.store.transact((tx) => {
    if (request.machine_id !== undefined) {
      findMachine(tx, request.machine_id);
      if (request.max_uses !== 1) throw invalidField('max_uses', 'must be 1 for the token of a machine');
    }
    const row: Row<'enrollment_tokens'> = {
      id: tx.id(),
      token_hash: hashToken(token),
      max_uses: request.max_uses,
      uses: 0,
      created_at: tx.now,
      expires_at: tx.now + request.expires_in_hours * HOUR_MS,
      revoked_at: null,
      machine_id: request.machine_id ?? null,
    };
    tx.run(query.insertInto('enrollment_tokens').values(row));
    recordAudit(tx, operator, 'enrollment_token.create', row.id, request);
    return { ...row, token };
  });
}

/** Operators: tokens, newest first; never the secrets. */
export function listEnrollmentTokens(platform: Platform, request: PageRequest): Page<Row<'enrollment_tokens'>> {
  const all = query.selectFrom('enrollment_tokens').selectAll();
  return platform.store.transact((tx) => pageOf(tx, all, request, newestFirst()));
}

/** Operators: no further host may enrol with the token; those that have stay. Refuses with NOT_FOUND. */
export function revokeEnrollmentToken(platform: Platform, operator: Operator, id: string): void {
  platform.store.transact((tx) => {
    const changed = tx.run(
      query
        .updateTable('enrollment_tokens')
        .set({ revoked_at: tx.now })
        .where('id', '=', id)
        .where('revoked_at', 'is', null),
    );
    if (changed === 0) throw new Refusal('NOT_FOUND', 'no enrollment token that is still valid has this id');
    recordAudit(tx, operator, 'enrollment_token.revoke', id);
  });
}

/** Who wants to be a host: `hostId` is empty, or who it means to be again. */
export interface Newcomer {
  token: string;
  inventory: Inventory;
  hostId: string;
  /** Whose workloads its Docker holds. */
  earlier: readonly EarlierHost[];
}

/** What a host gets that has enrolled; the credential is in this answer and nowhere else. */
export interface Enrolled {
  hostId: string;
  /** The secret of a host whose wire is plain text. */
  credential: string;
  /** PEM, of a host whose wire is TLS. */
  certificate: string;
}

/**
 * Makes a host of whoever holds a valid token, in plain text. With a token of a machine it is that machine again: whatever proved
 * it before is good no longer. Refuses with TOKEN_INVALID, the same for an unknown, spent, expired and revoked token, with
 * VALIDATION_FAILED, and with MACHINE_IN_USE a host that is a machine already, and would be another one.
 */
export function enrollHost(platform: Platform, newcomer: Newcomer): Enrolled {
  const hostId = hostFor(platform, newcomer);
  const credential = `agt_${platform.ids.hex(32)}`;
  register(platform, newcomer, hostId, { hash: hashToken(credential), expiresAt: null });
  return { hostId, credential, certificate: '' };
}

/** The same over TLS: what the host gets is a certificate for the key that its request is signed with. */
export async function certifyHost(platform: Platform, newcomer: Newcomer, request: Uint8Array): Promise<Enrolled> {
  const hostId = hostFor(platform, newcomer);
  const { pem, fingerprint, expiresAt } = await platform.authority.certifyHost(request, hostId);
  register(platform, newcomer, hostId, { hash: fingerprint, expiresAt });
  return { hostId, credential: '', certificate: pem };
}

/** Who a host will be. */
function hostFor(platform: Platform, newcomer: Newcomer): string {
  const { token, inventory, hostId, earlier } = newcomer;
  validateInventory(inventory);
  validateEarlierHosts(earlier);
  const known = platform.store.transact((tx) => {
    const { machine_id } = findToken(tx, token);
    if (machine_id === null && hostId === '') requireNewMachine(platform, tx, belongingsOf(newcomer));
    return machine_id;
  });
  if (hostId !== '' && hostId !== known)
    throw new Refusal(
      'TOKEN_INVALID',
      `this is no token of machine ${hostId}; ask the operator for one, or, where that machine was removed, enrol with --new instead of --again`,
    );
  return known ?? platform.ids.uuid();
}

function belongingsOf({ inventory, earlier }: Newcomer): Belongings {
  return { gpuUuids: inventory.gpus.map(({ uuid }) => uuid), earlier: earlier.map(({ hostId }) => hostId) };
}

function findToken(tx: Tx, token: string): Row<'enrollment_tokens'> {
  const found = tx.get(
    query
      .selectFrom('enrollment_tokens')
      .selectAll()
      .where('token_hash', '=', hashToken(token))
      .where('expires_at', '>', tx.now)
      .where('revoked_at', 'is', null)
      .whereRef('uses', '<', 'max_uses'),
  );
  if (found) return found;
  throw new Refusal(
    'TOKEN_INVALID',
    'the enrollment token is unknown, used up, expired or revoked; ask the operator for a new one',
  );
}

function register(platform: Platform, newcomer: Newcomer, hostId: string, credential: Credential): void {
  const { token, inventory } = newcomer;
  platform.store.transact((tx) => {
    const { id, machine_id: known } = findToken(tx, token);
    tx.run(
      query
        .updateTable('enrollment_tokens')
        .set((eb) => ({ uses: eb('uses', '+', 1) }))
        .where('id', '=', id),
    );
    if (known === null) {
      // Another one may have enrolled meanwhile.
      requireNewMachine(platform, tx, belongingsOf(newcomer));
      saveInventory(tx, hostId, inventory);
    } else {
      findMachine(tx, known);
      revoke(tx, known);
      updateInventory(tx, known, inventory);
      tx.afterCommit(() => platform.connections.close(known, 'this host has enrolled anew'));
    }
    addCredential(tx, hostId, credential);
  });
}
