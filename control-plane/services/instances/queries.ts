import type { CountedKeys, Rates } from '../../domain/money/burn.js';
import type { Caller } from '../../domain/caller.js';
import type { InstanceStatus } from '../../domain/instances/instance-state.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, listOf, query, rowById, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Order } from '../system/pages.js';

export type Instance = Row<'instances'>;

export function findInstance(tx: Tx, id: string): Instance | undefined {
  return tx.get(rowById('instances', id));
}

/** Returns an instance of the caller's organization. Refuses an unknown and a foreign id alike, with INSTANCE_NOT_FOUND. */
export function getOwnInstance(tx: Tx, caller: Caller, id: string): Instance {
  const instance = findInstance(tx, id);
  if (instance?.organization_id !== caller.organizationId) throw unknownInstance();
  return instance;
}

export function unknownInstance(): Refusal {
  return new Refusal('INSTANCE_NOT_FOUND', 'no instance of this organization has this id');
}

/** Returns the instances of an organization in one status, which is not `destroyed`. */
export function instancesIn(tx: Tx, organizationId: string, status: Exclude<InstanceStatus, 'destroyed'>): Instance[] {
  return tx.all(liveIn({ organizationId, status }));
}

const liveIn = compileOnce(({ organizationId, status }: { organizationId: string; status: InstanceStatus }) =>
  query
    .selectFrom('instances')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('status', '=', status)
    .where('status', '<>', sql.lit('destroyed')),
);

/** The newest first, in the order of the index that {@link liveIdsOf} and {@link sizesOf} use. */
export const INSTANCE_ORDER: Order<Pick<Instance, 'created_at'> & { position: number }> = {
  by: { created_at: 'desc', rowid: 'desc' },
  keyOf: ({ created_at, position }) => [created_at, position],
};

/**
 * Returns the query of the ids of all instances of an organization, also destroyed ones, in no order, with the bytes that each takes.
 * SQLite finds those in the head of a row, without reading the rest.
 */
export function sizesOf(organizationId: string) {
  const bytes = sql<number>`octet_length(template_snapshot) + ifnull(octet_length(workload_encrypted), 0)`.as('bytes');
  return ofOrganization(organizationId).select(['id', 'created_at', bytes]);
}

/** Returns the instances with the ids of some rows, in their order. */
export function findInstances(tx: Tx, found: readonly { id: string }[]): Instance[] {
  const ids = found.map(({ id }) => id);
  const rows = tx.all(query.selectFrom('instances').selectAll().where('id', 'in', listOf(ids)));
  const instances = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => instances.get(id) ?? []);
}

/** Returns the query of the ids of an organization's instances that are not destroyed, in no order. */
export function liveIdsOf(organizationId: string) {
  return ofOrganization(organizationId).select(['id', 'created_at']).where('status', '<>', sql.lit('destroyed'));
}

function ofOrganization(organizationId: string) {
  const position = sql<number>`rowid`.as('position');
  return query.selectFrom('instances').select(position).where('organization_id', '=', organizationId);
}

/** The prices of an instance, its status, and the API keys for whose caps it counts. */
export type LiveInstance = Rates & CountedKeys & { id: string; status: InstanceStatus };

/**
 * Returns the prices of an organization's instances that are not destroyed. A disk on a lost or removed machine costs nothing.
 */
export function findLiveRates(tx: Tx, organizationId: string): LiveInstance[] {
  return tx.all(liveRatesOf({ organizationId }));
}

const liveRatesOf = compileOnce(({ organizationId }: { organizationId: string }) =>
  query
    .selectFrom('instances')
    .innerJoin('machines', 'machines.id', 'instances.machine_id')
    .select(['instances.id', 'status', 'api_key_id as apiKeyId', 'run_key_id as runKeyId'])
    .select(['price_per_hour_micro as pricePerHourMicro', 'instances.disk_gb as diskGb'])
    .select(
      sql<number>`iif(lost_at IS NULL AND removed_at IS NULL, storage_price_per_gb_hour_micro, 0)`.as(
        'storagePricePerGbHourMicro',
      ),
    )
    .where('organization_id', '=', organizationId)
    .where('status', '<>', sql.lit('destroyed')),
);

/** Returns the machine of each instance of an organization that is not destroyed. */
export function liveMachineIds(tx: Tx, organizationId: string): string[] {
  const live = query.selectFrom('instances').select('machine_id').where('organization_id', '=', organizationId);
  return tx.all(live.where('status', '<>', sql.lit('destroyed'))).map(({ machine_id }) => machine_id);
}

/** Returns the UUIDs of the instance's GPUs, whether it holds or has released them. */
export function gpusOf(tx: Tx, instanceId: string): string[] {
  return tx.all(gpusOfInstance({ instanceId })).map((row) => row.gpu_uuid);
}

const gpusOfInstance = compileOnce(({ instanceId }: { instanceId: string }) =>
  query.selectFrom('instance_gpus').select('gpu_uuid').where('instance_id', '=', instanceId).orderBy('gpu_uuid'),
);
