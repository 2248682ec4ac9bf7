import { Refusal } from '../../domain/refusal.js';
import { compileOnce, insertRow, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { gpusOf, type Instance } from './queries.js';

/** Claims GPUs for an instance. Throws if one is claimed already: the primary key of the table forbids it. */
export function claimGpus(tx: Tx, instance: Instance, gpuUuids: readonly string[]): void {
  for (const gpu_uuid of gpuUuids) {
    const claim = { machine_id: instance.machine_id, gpu_uuid, instance_id: instance.id, claimed_at: tx.now };
    tx.run(insertRow('gpu_claims', claim));
  }
}

/** Deletes the claims of an instance. Callers must have the host's confirmation that it no longer uses the GPUs. */
export function dropClaims(tx: Tx, instanceId: string): void {
  tx.run(claimsOf({ instanceId }));
}

const claimsOf = compileOnce(({ instanceId }: { instanceId: string }) =>
  query.deleteFrom('gpu_claims').where('instance_id', '=', instanceId),
);

/** Returns the ids of other instances that hold GPUs of this one. */
export function findHolders(tx: Tx, instance: Instance): string[] {
  const claims = query
    .selectFrom('gpu_claims')
    .select('instance_id')
    .distinct()
    .where('machine_id', '=', instance.machine_id)
    .where('gpu_uuid', 'in', gpusOf(tx, instance.id))
    .where('instance_id', '<>', instance.id);
  return tx.all(claims).map(({ instance_id }) => instance_id);
}

/** Tells whether a workload in quarantine holds a GPU of this instance. */
export function isQuarantined(tx: Tx, instance: Instance): boolean {
  const quarantined = query
    .selectFrom('quarantine_gpus')
    .innerJoin('quarantine', 'quarantine.id', 'quarantine_gpus.quarantine_id')
    .select('quarantine.id')
    .where('quarantine.machine_id', '=', instance.machine_id)
    .where('quarantine_gpus.gpu_uuid', 'in', gpusOf(tx, instance.id));
  return tx.get(quarantined) !== undefined;
}

/**
 * Claims again exactly the GPUs that an instance has released. Refuses with CAPACITY_UNAVAILABLE if another instance or a workload in
 * quarantine holds one.
 */
export function reclaimGpus(tx: Tx, instance: Instance): void {
  if (isQuarantined(tx, instance) || findHolders(tx, instance).length > 0) {
    throw new Refusal(
      'CAPACITY_UNAVAILABLE',
      'another renter now uses a GPU of this instance; the disk is kept, try again later',
    );
  }
  const held = tx.all(query.selectFrom('gpu_claims').select('gpu_uuid').where('instance_id', '=', instance.id));
  const missing = gpusOf(tx, instance.id).filter((uuid) => !held.some(({ gpu_uuid }) => gpu_uuid === uuid));
  claimGpus(tx, instance, missing);
}
