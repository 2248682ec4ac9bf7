import type { Operator } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { restoredAt } from '../../store/meta.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import type { Platform } from '../system/platform.js';
import { saveInventory } from './inventory.js';
import { findMachine } from './machines.js';

/** What a host proves itself by, as it is stored; `expiresAt` in ms since 1970 UTC, null: never. */
export interface Credential {
  hash: string;
  expiresAt: number | null;
}

/** Of what a host may say at once. */
const RENEWAL_UNITS = 200;
const UNKNOWN =
  'this credential belongs to no host, or its certificate has expired; a host that is known here enrols again with a token of its machine ("enroll --again"), any other one as a new machine ("enroll --new")';

/** What a host has shown. */
export interface Proof {
  /** Of its certificate or its secret. */
  hash: string;
  certified?: Certified;
}

/** What its certificate says, which our authority has signed; both times in ms since 1970 UTC. */
interface Certified {
  hostId: string;
  issuedAt: number;
  expiresAt: number;
}

/**
 * The id of the machine that shows a credential. The first use of one ends all older ones of its machine. Refuses with
 * TOKEN_INVALID, saying why: unknown, replaced, revoked, expired, or of a machine that was removed. A host that has enrolled, or
 * renewed its certificate, since the copy of the store was made that was restored is known by our authority's word for it.
 */
export function admitHost(platform: Platform, { hash, certified }: Proof): string {
  return platform.store.transact((tx) => {
    if (certified) recall(tx, hash, certified);
    const known = tx.get(
      query
        .selectFrom('host_credentials')
        .innerJoin('machines', 'machines.id', 'host_credentials.machine_id')
        .selectAll('host_credentials')
        .select('machines.removed_at')
        .where('hash', '=', hash),
    );
    if (!known) throw new Refusal('TOKEN_INVALID', UNKNOWN);
    if (known.removed_at !== null)
      throw new Refusal(
        'TOKEN_INVALID',
        'an operator has removed this host; to be a new machine, it enrols with "gpurent-agent enroll --new" and an enrolment token',
      );
    if (known.revoked_at !== null) {
      const details = 'replaced by a newer one, or an operator has revoked it';
      throw new Refusal(
        'TOKEN_INVALID',
        `this credential was ${details}; ask the operator for a token of this machine, for "gpurent-agent enroll --again"`,
      );
    }
    if (known.expires_at !== null && known.expires_at <= tx.now) {
      throw new Refusal(
        'TOKEN_INVALID',
        'the certificate of this host has expired; ask the operator for a token of this machine, for "gpurent-agent enroll --again"',
      );
    }
    revoke(tx, known.machine_id, known.generation);
    return known.machine_id;
  });
}

/** Brings back what a restored copy of the store had not heard of yet. What it is, the host says next. */
function recall(tx: Tx, hash: string, certified: Certified): void {
  const { hostId, issuedAt, expiresAt } = certified;
  const isKnown = tx.get(query.selectFrom('machines').select('id').where('id', '=', hostId)) !== undefined;
  if (!isKnown && issuedAt < restoredAt(tx)) {
    saveInventory(tx, hostId, Inventory.create({ name: hostId }));
    tx.run(query.updateTable('machines').set({ needs_resync: 1 }).where('id', '=', hostId));
  }
  if (isForgotten(tx, hash, certified)) addCredential(tx, hostId, { hash, expiresAt });
}

/** Of a machine that was not heard since a restore: not known, and newer than all that was said of its credentials. */
function isForgotten(tx: Tx, hash: string, { hostId, issuedAt }: Certified): boolean {
  const machine = tx.get(query.selectFrom('machines').select('needs_resync').where('id', '=', hostId));
  if (machine?.needs_resync !== 1) return false;
  const known = tx.all(query.selectFrom('host_credentials').selectAll().where('machine_id', '=', hostId));
  return known.every((row) => row.hash !== hash && Math.max(row.issued_at, row.revoked_at ?? 0) < issuedAt);
}

/** Records a further credential of a machine; the older ones are good until it is used. */
export function addCredential(tx: Tx, machineId: string, { hash, expiresAt }: Credential): void {
  const newest = tx.get(
    query
      .selectFrom('host_credentials')
      .select((eb) => eb.fn.max('generation').as('generation'))
      .where('machine_id', '=', machineId),
  );
  const row = { machine_id: machineId, hash, issued_at: tx.now, expires_at: expiresAt, revoked_at: null };
  tx.run(query.insertInto('host_credentials').values({ ...row, generation: (newest?.generation ?? 0) + 1 }));
}

/**
 * A new certificate for the host that has shown `proof`. One that was issued before and never used is forgotten: its answer was lost.
 * Refuses with TOKEN_INVALID as {@link admitHost}, and with VALIDATION_FAILED for a request that cannot be used.
 */
export async function renewCertificate(platform: Platform, proof: Proof, request: Uint8Array): Promise<string> {
  const { hash } = proof;
  const machineId = admitHost(platform, proof);
  if (platform.connections.isBlocked(machineId) || !platform.connections.allows(machineId, 'facts', RENEWAL_UNITS))
    throw new Refusal('RATE_LIMITED', 'this host has asked for too much at once; it may come back in a minute');
  const { pem, fingerprint, expiresAt } = await platform.authority.certifyHost(request, machineId);
  platform.store.transact((tx) => {
    const shown = tx.get(
      query
        .selectFrom('host_credentials')
        .select('generation')
        .where('hash', '=', hash)
        .where('revoked_at', 'is', null),
    );
    if (!shown) throw new Refusal('TOKEN_INVALID', 'this credential was revoked meanwhile');
    tx.run(
      query
        .deleteFrom('host_credentials')
        .where('machine_id', '=', machineId)
        .where('generation', '>', shown.generation),
    );
    addCredential(tx, machineId, { hash: fingerprint, expiresAt });
  });
  return pem;
}

/**
 * Operators: whatever the machine proves itself by is good no longer, and its stream ends; what runs there goes on. It comes back
 * with an enrolment token of its own. Refuses with MACHINE_NOT_FOUND.
 */
export function revokeCredentials(platform: Platform, operator: Operator, machineId: string): void {
  platform.store.transact((tx) => {
    findMachine(tx, machineId);
    revoke(tx, machineId);
    recordAudit(tx, operator, 'machine.revoke_credentials', machineId);
    tx.afterCommit(() => platform.connections.close(machineId, 'an operator has revoked the credentials of this host'));
  });
}

/** Ends the credentials of a machine, or those below a generation. */
export function revoke(tx: Tx, machineId: string, below?: number): void {
  let statement = query
    .updateTable('host_credentials')
    .set({ revoked_at: tx.now })
    .where('machine_id', '=', machineId)
    .where('revoked_at', 'is', null);
  if (below !== undefined) statement = statement.where('generation', '<', below);
  tx.run(statement);
}
