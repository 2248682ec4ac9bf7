import type { Rates } from '../../domain/burn.js';
import type { Caller } from '../../domain/caller.js';
import type { InstanceStatus } from '../../domain/instance-state.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

export type Instance = Row<'instances'>;

export function findInstance(tx: Tx, id: string): Instance | undefined {
  return tx.get(query.selectFrom('instances').selectAll().where('id', '=', id));
}

/** Refuses with INSTANCE_NOT_FOUND, the same for an unknown id and for another organisation's instance. */
export function getOwnInstance(tx: Tx, caller: Caller, id: string): Instance {
  const instance = findInstance(tx, id);
  if (instance?.organization_id !== caller.organizationId) {
    throw new Refusal('INSTANCE_NOT_FOUND', 'no instance of this organization has this id');
  }
  return instance;
}

/** An organisation's instances that are not destroyed. */
export function findLiveInstances(tx: Tx, organizationId: string): Instance[] {
  return tx.all(
    query
      .selectFrom('instances')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('status', '<>', 'destroyed'),
  );
}

export function ratesOf(instance: Instance): Rates & { status: InstanceStatus } {
  return {
    status: instance.status,
    pricePerHourMicro: instance.price_per_hour_micro,
    storagePricePerGbHourMicro: instance.storage_price_per_gb_hour_micro,
    diskGb: instance.disk_gb,
  };
}

/** The GPUs that the instance was given, held or released. */
export function gpusOf(tx: Tx, instanceId: string): string[] {
  return tx
    .all(query.selectFrom('instance_gpus').select('gpu_uuid').where('instance_id', '=', instanceId).orderBy('gpu_uuid'))
    .map((row) => row.gpu_uuid);
}
