import { Refusal } from '../../domain/refusal.js';
import { listOf, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';

/** A machine that reports a GPU. */
interface Claimant {
  uuid: string;
  machine_id: string;
  name: string;
  seen_at: number;
  enrolled_at: number;
}

/** What identifies a host that enrolls as a new machine. */
export interface Belongings {
  gpuUuids: readonly string[];
  /** The machines whose workloads the host's Docker has. */
  earlier: readonly string[];
}

/**
 * Refuses with MACHINE_IN_USE a host that is already a machine. If a host that lost its state enrolled as a new machine, its GPUs
 * would be sold twice and its workloads would go on unmanaged. The workloads of a machine that is connected are no reason: agents
 * of several machines can share a Docker.
 */
export function requireNewMachine({ connections }: Platform, tx: Tx, { gpuUuids, earlier }: Belongings): void {
  const [owner] = claimantsOf(tx, gpuUuids);
  if (owner) throw isMachine(owner.machine_id, owner.name, `it has the GPU ${owner.uuid}`);
  const known = tx.all(
    query
      .selectFrom('machines')
      .select(['id', 'name'])
      .where('id', 'in', listOf(earlier))
      .where('removed_at', 'is', null),
  );
  const lost = known.find(({ id }) => !connections.isConnected(id));
  if (lost) throw isMachine(lost.id, lost.name, 'its Docker holds workloads of that machine');
}

/**
 * Returns, by UUID, why GPUs that a machine reports belong to another machine: one that is not removed has reported them for
 * longer.
 */
export function foreignGpus(tx: Tx, machineId: string, uuids: readonly string[]): Map<string, string> {
  const claimants = claimantsOf(tx, uuids);
  const own = new Map(claimants.filter(({ machine_id }) => machine_id === machineId).map((row) => [row.uuid, row]));
  const foreign = new Map<string, string>();
  for (const other of claimants) {
    const mine = own.get(other.uuid);
    if (other.machine_id !== machineId && mine && isOlder(other, mine))
      foreign.set(
        other.uuid,
        `machine ${other.name} (${other.machine_id}) has reported this GPU for longer: remove that machine if it is gone for good or is this same host`,
      );
  }
  return foreign;
}

function claimantsOf(tx: Tx, uuids: readonly string[]): Claimant[] {
  return tx.all(
    query
      .selectFrom('gpus')
      .innerJoin('machines', 'machines.id', 'gpus.machine_id')
      .select(['uuid', 'machine_id', 'name', 'seen_at', 'enrolled_at'])
      .where('uuid', 'in', listOf(uuids))
      .where('present', '=', 1)
      .where('removed_at', 'is', null)
      .orderBy('seen_at')
      .orderBy('machine_id'),
  );
}

function isOlder(a: Claimant, b: Claimant): boolean {
  if (a.seen_at !== b.seen_at) return a.seen_at < b.seen_at;
  if (a.enrolled_at !== b.enrolled_at) return a.enrolled_at < b.enrolled_at;
  return a.machine_id < b.machine_id;
}

function isMachine(id: string, name: string, why: string): Refusal {
  return new Refusal(
    'MACHINE_IN_USE',
    `this host is already machine ${name} (${id}): ${why}. To enroll it again and keep its workloads, ask the operator for a token of that machine (POST /v1/operator/enrollment-tokens {"machine_id": "${id}"}). If that machine is gone for good, the operator must first remove it (DELETE /v1/operator/machines/${id})`,
  );
}
