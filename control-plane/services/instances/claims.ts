import { Refusal } from '../../domain/refusal.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { gpusOf, type Instance } from './queries.js';

/** The unique key of the table makes it impossible to claim a GPU that is held. */
export function claimGpus(tx: Tx, instance: Instance, gpuUuids: readonly string[]): void {
  for (const gpu_uuid of gpuUuids) {
    tx.run(
      query
        .insertInto('gpu_claims')
        .values({ machine_id: instance.machine_id, gpu_uuid, instance_id: instance.id, claimed_at: tx.now }),
    );
  }
}

/** Gives an instance's GPUs back to the market: only on what its host has confirmed. */
export function dropClaims(tx: Tx, instanceId: string): void {
  tx.run(query.deleteFrom('gpu_claims').where('instance_id', '=', instanceId));
}

/**
 * Takes back exactly the GPUs that were released. Refuses with CAPACITY_UNAVAILABLE when another instance, or a workload in
 * quarantine, has one.
 */
export function reclaimGpus(tx: Tx, instance: Instance): void {
  const wanted = gpusOf(tx, instance.id);
  const holders = tx.all(
    query
      .selectFrom('gpu_claims')
      .selectAll()
      .where('machine_id', '=', instance.machine_id)
      .where('gpu_uuid', 'in', wanted),
  );
  const setApart = tx.get(
    query
      .selectFrom('quarantine_gpus')
      .innerJoin('quarantine', 'quarantine.id', 'quarantine_gpus.quarantine_id')
      .select('quarantine.id')
      .where('quarantine.machine_id', '=', instance.machine_id)
      .where('quarantine_gpus.gpu_uuid', 'in', wanted),
  );
  if (setApart || holders.some((claim) => claim.instance_id !== instance.id)) {
    throw new Refusal(
      'CAPACITY_UNAVAILABLE',
      'another renter now uses a GPU of this instance; the disk is kept, try again later',
    );
  }
  const held = new Set(holders.map((claim) => claim.gpu_uuid));
  claimGpus(
    tx,
    instance,
    wanted.filter((uuid) => !held.has(uuid)),
  );
}
