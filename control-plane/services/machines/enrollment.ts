import type { Operator } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { EarlierHost, Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { withFingerprint } from '../../../shared/network/tls.js';
import { HOUR_MS } from '../../../shared/time.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { addCredential, revoke, type Credential } from './credentials.js';
import { validateEarlierHosts, validateInventory, validateNames } from './message-validation.js';
import { refuseOwnName } from './browser-hosts.js';
import { requireNewMachine } from './gpu-owners.js';
import { saveInventory, updateInventory } from './inventory.js';
import { findMachine } from './machines.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import { hashToken } from '../secrets/tokens.js';

export type EnrollmentTokenDetails = Row<'enrollment_tokens'>;

/**
 * Creates an enrollment token for an operator. With it `max_uses` hosts can enroll, or, with `machine_id`, the host of that machine
 * again. Only this answer has the token. If the control plane uses its own authority, the token contains its fingerprint. Refuses
 * with MACHINE_NOT_FOUND and VALIDATION_FAILED.
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
      made_by: operator.userId,
    };
    tx.run(query.insertInto('enrollment_tokens').values(row));
    recordAudit(tx, operator, 'enrollment_token.create', row.id, request);
    return { ...row, token };
  });
}

/**
 * Lists the enrollment tokens for an operator, newest first. `usable`: only those with which a host can still enroll, the one that expires
 * first first.
 */
export function listEnrollmentTokens(
  core: Core,
  { usable = false, ...request }: PageRequest & { usable?: boolean },
): Page<Row<'enrollment_tokens'>> {
  const all = query.selectFrom('enrollment_tokens').selectAll();
  return core.store.transact((tx) =>
    usable ? pageOf(tx, usableTokens(tx.now), request, BY_EXPIRY) : pageOf(tx, all, request, newestFirst()),
  );
}

export const BY_EXPIRY = {
  by: { expires_at: 'asc', id: 'asc' },
  keyOf: ({ expires_at, id }: Row<'enrollment_tokens'>) => [expires_at, id],
} as const;

/** Returns a query for the tokens with which a host can enroll at a time. A token ends when its maker is no operator any more. */
export function usableTokens(now: number) {
  return query
    .selectFrom('enrollment_tokens')
    .selectAll()
    .where('expires_at', '>', now)
    .where('revoked_at', 'is', null)
    .whereRef('uses', '<', 'max_uses')
    .where((eb) =>
      eb.or([
        eb('made_by', 'is', null),
        eb.exists(
          eb
            .selectFrom('users')
            .select('users.id')
            .whereRef('users.id', '=', 'enrollment_tokens.made_by')
            .where('is_operator', '=', sql.lit(1)),
        ),
      ]),
    );
}

/** Revokes an enrollment token for an operator. Hosts that enrolled with it stay. Refuses with NOT_FOUND. */
export function revokeEnrollmentToken(core: Core, operator: Operator, id: string): void {
  core.store.transact((tx) => {
    const changed = tx.run(
      query
        .updateTable('enrollment_tokens')
        .set({ revoked_at: tx.now })
        .where('id', '=', id)
        .where('revoked_at', 'is', null),
    );
    if (changed === 0) throw new Refusal('NOT_FOUND', 'no enrollment token has this id, or it is already revoked');
    recordAudit(tx, operator, 'enrollment_token.revoke', id);
  });
}

/** A host that asks to enroll. */
export interface Newcomer {
  token: string;
  inventory: Inventory;
  /** The machine that the host was before (`enroll --again`); empty for a new machine. */
  hostId: string;
  /** The machines whose workloads the host's Docker has. */
  earlier: readonly EarlierHost[];
}

/** The identity of an enrolled host. Only this answer has the credential. */
export interface Enrolled {
  hostId: string;
  /** The secret of a host that connects without TLS; otherwise empty. */
  credential: string;
  /** The certificate, in PEM, of a host that connects by TLS; otherwise empty. */
  certificate: string;
}

/**
 * Enrolls a host that connects without TLS. With a token of a machine the host becomes that machine again, and its earlier
 * credentials are revoked. Refuses with TOKEN_INVALID, the same for an unknown, spent, expired and revoked token, with
 * VALIDATION_FAILED, and with MACHINE_IN_USE if the host is already a machine and would become another one.
 */
export function enrollHost(platform: Platform, newcomer: Newcomer): Enrolled {
  const hostId = hostFor(platform, newcomer);
  const credential = `agt_${platform.ids.hex(32)}`;
  register(platform, newcomer, hostId, { hash: hashToken(credential), expiresAt: null });
  return { hostId, credential, certificate: '' };
}

/** Enrolls a host over TLS, like {@link enrollHost}, with a certificate for the key of its PKCS #10 request. */
export async function certifyHost(platform: Platform, newcomer: Newcomer, request: Uint8Array): Promise<Enrolled> {
  const hostId = hostFor(platform, newcomer);
  const { pem, fingerprint, expiresAt } = await platform.authority.certifyHost(request, hostId);
  register(platform, newcomer, hostId, { hash: fingerprint, expiresAt });
  return { hostId, credential: '', certificate: pem };
}

/** Returns the id that the host gets. Refuses like {@link enrollHost}. */
function hostFor(platform: Platform, newcomer: Newcomer): string {
  const { token, inventory, hostId, earlier } = newcomer;
  validateInventory(inventory);
  validateNames(inventory);
  validateEarlierHosts(earlier);
  requireArchitecture(inventory.arch);
  const known = platform.store.transact((tx) => {
    const { machine_id } = findToken(tx, token);
    if (machine_id === null && hostId === '') requireNewMachine(platform, tx, idsOf(earlier));
    return machine_id;
  });
  if (hostId !== '' && hostId !== known)
    throw new Refusal(
      'TOKEN_INVALID',
      `this token is not for machine ${hostId}; ask the operator for a token of that machine, or, if it was removed, enroll with --new instead of --again`,
    );
  return known ?? platform.ids.uuid();
}

/** Refuses with VALIDATION_FAILED a host for whose processor there is no agent; its token stays unused. */
function requireArchitecture(arch: string): void {
  if (arch !== 'x86_64')
    throw invalidField(
      'inventory.arch',
      `is "${arch}", but hosts are x86_64: enroll a machine with an x86_64 processor`,
    );
}

function idsOf(earlier: readonly EarlierHost[]): string[] {
  return earlier.map(({ hostId }) => hostId);
}

/** Refuses with TOKEN_INVALID a token with which no host can enroll. It stays as it is. */
export function checkEnrollmentToken({ store }: Core, token: string): void {
  store.transact((tx) => findToken(tx, token));
}

function findToken(tx: Tx, token: string): Row<'enrollment_tokens'> {
  const found = tx.get(usableTokens(tx.now).where('token_hash', '=', hashToken(token)));
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
      // Since the first check one of the earlier machines can have disconnected.
      requireNewMachine(platform, tx, idsOf(newcomer.earlier));
      refuseOwnName(platform, inventory.publicAddress);
      saveInventory(tx, hostId, inventory);
    } else {
      const machine = findMachine(tx, known);
      refuseOwnName(platform, inventory.publicAddress, machine);
      revoke(tx, known);
      updateInventory(tx, machine, inventory);
      tx.afterCommit(() => platform.connections.close(known, 'this host has enrolled again'));
    }
    addCredential(tx, hostId, credential);
  });
}
