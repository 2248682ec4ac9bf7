import type { Operator } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { restoredAt } from '../../store/meta.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import type { Platform } from '../system/platform.js';
import { saveInventory } from './inventory.js';
import { findMachine } from './machines.js';

/** A credential of a host, as it is stored. `expiresAt` is in ms since 1970 UTC; null: never. */
export interface Credential {
  hash: string;
  expiresAt: number | null;
}

/** Units that one renewal takes from the message limit of its host. */
const RENEWAL_UNITS = 200;
// Agents recognize refusals by their words (agent/domain/link-remedy.ts): "belongs to no host", "has removed this host",
// "replaced by a newer one", "revoked", "certificate of this host has expired", "too much at once".
const UNKNOWN =
  'this credential belongs to no host, or its certificate has expired; enroll the host again: with a token of its machine and "gpurent-agent enroll --again", or as a new machine with "gpurent-agent enroll --new"';

/** The credential that a host presents. */
export interface Proof {
  /** The fingerprint of its certificate, or the hash of its secret. */
  hash: string;
  certified?: Certified;
}

/** The fields of a host's certificate, which our authority has signed. Both times are in ms since 1970 UTC. */
interface Certified {
  hostId: string;
  issuedAt: number;
  expiresAt: number;
}

/**
 * Returns the id of the machine that a credential belongs to. The first use of a credential revokes all older ones of its machine.
 * Refuses with TOKEN_INVALID and the reason: unknown, replaced, revoked, expired, or of a removed machine. After a restore, the
 * database can lack hosts that enrolled, and certificates that were renewed, after the backup: they are recognized by the
 * signature of our authority.
 */
export function admitHost(platform: Platform, { hash, certified }: Proof): string {
  return platform.store.transact((tx) => {
    let known = tx.get(credentialBy({ hash }));
    if (!known && certified) {
      recall(tx, hash, certified);
      known = tx.get(credentialBy({ hash }));
    }
    if (!known) throw new Refusal('TOKEN_INVALID', UNKNOWN);
    if (known.removed_at !== null)
      throw new Refusal(
        'TOKEN_INVALID',
        'an operator has removed this host; enroll it as a new machine with "gpurent-agent enroll --new" and an enrollment token',
      );
    if (known.revoked_at !== null) {
      const details = 'replaced by a newer one, or revoked by an operator';
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
    const { machine_id, generation } = known;
    // Most hosts have no older credential, and then a reconnection writes nothing.
    if (tx.get(olderCredential({ machine_id, generation }))) revoke(tx, machine_id, generation);
    return machine_id;
  });
}

const credentialBy = compileOnce(({ hash }: { hash: string }) =>
  query
    .selectFrom('host_credentials')
    .innerJoin('machines', 'machines.id', 'host_credentials.machine_id')
    .selectAll('host_credentials')
    .select('machines.removed_at')
    .where('hash', '=', hash),
);

const olderCredential = compileOnce(({ machine_id, generation }: { machine_id: string; generation: number }) =>
  query
    .selectFrom('host_credentials')
    .select('generation')
    .where('machine_id', '=', machine_id)
    .where('revoked_at', 'is', null)
    .where('generation', '<', generation)
    .limit(1),
);

/**
 * Adds the machine or the credential of a certificate that a restored database lacks. A new row has only an id; the agent's hello
 * sends the inventory next.
 */
function recall(tx: Tx, hash: string, certified: Certified): void {
  const { hostId, issuedAt, expiresAt } = certified;
  const isKnown = tx.get(query.selectFrom('machines').select('id').where('id', '=', hostId)) !== undefined;
  if (!isKnown && issuedAt < restoredAt(tx)) {
    saveInventory(tx, hostId, Inventory.create({ name: hostId }));
    tx.run(query.updateTable('machines').set({ needs_resync: 1 }).where('id', '=', hostId));
  }
  if (isForgotten(tx, hash, certified)) addCredential(tx, hostId, { hash, expiresAt });
}

/**
 * Tells whether a restored database lacks this certificate: its machine has not said hello since the restore, the certificate is
 * unknown, and it is newer than every issue and revocation of a credential of that machine.
 */
function isForgotten(tx: Tx, hash: string, { hostId, issuedAt }: Certified): boolean {
  const machine = tx.get(query.selectFrom('machines').select('needs_resync').where('id', '=', hostId));
  if (machine?.needs_resync !== 1) return false;
  const known = tx.all(query.selectFrom('host_credentials').selectAll().where('machine_id', '=', hostId));
  return known.every((row) => row.hash !== hash && Math.max(row.issued_at, row.revoked_at ?? 0) < issuedAt);
}

/** Records a further credential of a machine. The older ones stay valid until the new one is used. */
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
 * Issues a new certificate to the host that presents `proof`, and returns it in PEM. Deletes certificates that were issued after
 * `proof` and never used: their answers were lost. Refuses with TOKEN_INVALID like {@link admitHost}, with RATE_LIMITED, and
 * with VALIDATION_FAILED for an unusable request.
 */
export async function renewCertificate(platform: Platform, proof: Proof, request: Uint8Array): Promise<string> {
  const { hash } = proof;
  const machineId = admitHost(platform, proof);
  if (platform.connections.isBlocked(machineId) || !platform.connections.allows(machineId, 'facts', RENEWAL_UNITS))
    throw new Refusal('RATE_LIMITED', 'this host has sent too much at once and is blocked; try again in a minute');
  const { pem, fingerprint, expiresAt } = await platform.authority.certifyHost(request, machineId);
  platform.store.transact((tx) => {
    const shown = tx.get(
      query
        .selectFrom('host_credentials')
        .select('generation')
        .where('hash', '=', hash)
        .where('revoked_at', 'is', null),
    );
    if (!shown) throw new Refusal('TOKEN_INVALID', 'this credential was revoked during the renewal');
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
 * Revokes all credentials of a machine for an operator and closes its stream. Its workloads go on. Its host can connect again after
 * an enrollment with a token of this machine. Refuses with MACHINE_NOT_FOUND.
 */
export function revokeCredentials(platform: Platform, operator: Operator, machineId: string): void {
  platform.store.transact((tx) => {
    findMachine(tx, machineId);
    revoke(tx, machineId);
    recordAudit(tx, operator, 'machine.revoke_credentials', machineId);
    tx.afterCommit(() => platform.connections.close(machineId, 'an operator has revoked the credentials of this host'));
  });
}

/** Revokes the credentials of a machine, or only those below a generation. */
export function revoke(tx: Tx, machineId: string, below?: number): void {
  let statement = query
    .updateTable('host_credentials')
    .set({ revoked_at: tx.now })
    .where('machine_id', '=', machineId)
    .where('revoked_at', 'is', null);
  if (below !== undefined) statement = statement.where('generation', '<', below);
  tx.run(statement);
}
