import type { Operator } from '../../domain/caller.js';
import { invalidField, Refusal } from '../../domain/refusal.js';
import { compileOnce, listIn, listOf, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import type { Platform } from '../system/platform.js';
import { describeMachine, findGpus, findMachine, type GpuDetails, type MachineDetails } from './machines.js';

/**
 * Refuses with MACHINE_IN_USE a host whose Docker has workloads of another machine, because they would go on unmanaged. The workloads
 * of a machine that is connected are no reason: agents of several machines can share a Docker. The GPUs of a host are no reason either:
 * those that another machine has are not rented out, see {@link takeFreeGpus}. `earlier`: the machines whose workloads the host's
 * Docker has.
 */
export function requireNewMachine({ connections }: Platform, tx: Tx, earlier: readonly string[]): void {
  const known = tx.all(
    query
      .selectFrom('machines')
      .select(['id', 'name'])
      .where('id', 'in', listOf(earlier))
      .where('removed_at', 'is', null),
  );
  const lost = known.find(({ id }) => !connections.isConnected(id));
  if (lost) throw isMachine(lost.id, lost.name);
}

function isMachine(id: string, name: string): Refusal {
  return new Refusal(
    'MACHINE_IN_USE',
    `this host is already machine ${name} (${id}): its Docker holds workloads of that machine. To enroll it again and keep its workloads, ask the operator for a token of that machine (POST /v1/operator/enrollment-tokens {"machine_id": "${id}"}). If that machine is gone for good, the operator must first remove it (DELETE /v1/operator/machines/${id})`,
  );
}

/**
 * Gives each of these GPUs that belongs to no machine to the one that has reported it for longest. A UUID proves nothing: renters
 * learn those of their GPUs. So a GPU stays with the machine that reported it first, also while its host misses it or is away, until
 * an operator moves it or removes the machine. What a later machine reports of it is a dispute.
 */
export function takeFreeGpus(tx: Tx, uuids: readonly string[]): void {
  if (uuids.length > 0) tx.run(takeFree({ uuids: JSON.stringify(uuids) }));
}

const takeFree = compileOnce(({ uuids }: { uuids: string }) =>
  query
    .updateTable('gpus')
    .set({ owned: sql.lit(1) })
    .where('uuid', 'in', listIn(uuids))
    .where('present', '=', sql.lit(1))
    .where('owned', '=', sql.lit(0))
    .where(sql<boolean>`NOT EXISTS (SELECT 1 FROM gpus AS owned WHERE owned.uuid = gpus.uuid AND owned.owned = 1)`)
    .where(
      'machine_id',
      '=',
      sql<string>`(
        SELECT claimant.machine_id FROM gpus AS claimant
        WHERE claimant.uuid = gpus.uuid AND claimant.present = 1 AND claimant.owned = 0
        ORDER BY claimant.seen_at, claimant.machine_id LIMIT 1
      )`,
    ),
);

/** Takes all GPUs from a machine that an operator has removed. Those that other machines report belong to these from now on. */
export function disownGpus(tx: Tx, machineId: string): void {
  const owned = query.selectFrom('gpus').select('uuid').where('machine_id', '=', machineId);
  const uuids = tx.all(owned.where('owned', '=', sql.lit(1))).map(({ uuid }) => uuid);
  tx.run(query.updateTable('gpus').set({ owned: 0, present: 0 }).where('machine_id', '=', machineId));
  takeFreeGpus(tx, uuids);
}

/**
 * Gives, for an operator, a machine GPUs that it reports and that belong to other machines, after a card was moved to its host. Without
 * `uuids`, all of these. Refuses with MACHINE_NOT_FOUND; with VALIDATION_FAILED for a GPU that the machine does not report, or if no
 * GPU is to be moved; with MACHINE_IN_USE if an instance or a workload in quarantine holds one on the host that reported it last.
 */
export function assignGpus(
  platform: Platform,
  operator: Operator,
  machineId: string,
  uuids?: readonly string[],
): MachineDetails {
  return platform.store.transact((tx) => {
    const machine = findMachine(tx, machineId);
    const moved = disputedOf(findGpus(tx, machineId), uuids);
    for (const gpu of moved) {
      if (gpu.owner_id !== null) requireMovable(tx, gpu, gpu.owner_id);
      tx.run(query.updateTable('gpus').set({ owned: 0 }).where('uuid', '=', gpu.uuid).where('owned', '=', sql.lit(1)));
      tx.run(updateRows('gpus', { owned: 1, told_owner: null }, { machine_id: machineId, uuid: gpu.uuid }));
    }
    const gpus = moved.map(({ uuid, owner_id }) => ({ uuid, from: owner_id }));
    recordAudit(tx, operator, 'machine.assign_gpus', machineId, { gpus });
    return describeMachine(platform, tx, machine);
  });
}

function disputedOf(gpus: readonly GpuDetails[], uuids: readonly string[] | undefined): GpuDetails[] {
  const missing = uuids?.find((wanted) => !gpus.some(({ uuid }) => uuid === wanted));
  if (missing !== undefined)
    throw invalidField(
      'gpu_uuids',
      `must name GPUs that the host of this machine reports; it does not report ${missing}`,
    );
  const disputed = gpus.filter(({ owned, uuid }) => owned === 0 && (uuids?.includes(uuid) ?? true));
  if (disputed.length > 0) return disputed;
  throw invalidField('gpu_uuids', 'must name GPUs that belong to another machine; these belong to this one already');
}

/** Refuses to move a GPU that somebody uses, as far as anybody knows: the host of its machine reported it last, and a workload holds it. */
function requireMovable(tx: Tx, { uuid, owner_name }: GpuDetails, ownerId: string): void {
  const held = findGpus(tx, ownerId).find((gpu) => gpu.uuid === uuid);
  const holder = held?.instance_id ?? held?.quarantine_id;
  if (!holder) return;
  throw new Refusal(
    'MACHINE_IN_USE',
    `${held?.instance_id ? 'instance' : 'the workload in quarantine'} ${holder} holds the GPU ${uuid} on machine ${owner_name} (${ownerId}), whose host reported it last; destroy the instance or remove the workload, or, if that host is gone for good, declare its machine lost and remove it`,
  );
}
