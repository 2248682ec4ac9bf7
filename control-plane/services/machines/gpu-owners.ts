import { Refusal } from '../../domain/refusal.js';
import { listOf, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';

/** A machine that says that it has a GPU. */
interface Claimant {
  uuid: string;
  machine_id: string;
  name: string;
  seen_at: number;
  enrolled_at: number;
}

/** A host that wants to enrol as a new machine, by what it has. */
export interface Belongings {
  gpuUuids: readonly string[];
  /** Whose workloads its Docker holds. */
  earlier: readonly string[];
}

/**
 * Refuses with MACHINE_IN_USE a host that is a machine already: one that has lost its state and enrols as a new one would have its
 * GPUs sold twice, while its workloads go on unmanaged. Agents of several machines may share a Docker while they are connected.
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

/** Why GPUs that a machine reports are not its own: another one, which was not removed, has reported them for longer. */
export function foreignGpus(tx: Tx, machineId: string, uuids: readonly string[]): Map<string, string> {
  const claimants = claimantsOf(tx, uuids);
  const own = new Map(claimants.filter(({ machine_id }) => machine_id === machineId).map((row) => [row.uuid, row]));
  const foreign = new Map<string, string>();
  for (const other of claimants) {
    const mine = own.get(other.uuid);
    if (other.machine_id !== machineId && mine && isOlder(other, mine))
      foreign.set(
        other.uuid,
        `machine ${other.name} (${other.machine_id}) has this GPU: if it is gone for good, or is this very host, remove it`,
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
    `this host is machine ${name} (${id}) already, for ${why}. The operator makes a token of that machine, POST /v1/operator/enrollment-tokens {"machine_id": "${id}"}, by which it is the same one again and goes on with its workloads; if that machine is gone for good, the operator removes it first, DELETE /v1/operator/machines/${id}`,
  );
}
