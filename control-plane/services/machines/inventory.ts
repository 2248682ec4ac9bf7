import type { Gpu, Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { seenName } from '../../../shared/plain-text.js';
import { browserHost } from '../../domain/browser-host.js';
import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, listOf, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { takeFreeGpus } from './gpu-owners.js';
import { findGpus } from './machines.js';

/** Records a new machine with the inventory that its agent reports. */
export function saveInventory(tx: Tx, machineId: string, inventory: Inventory): void {
  tx.run(query.insertInto('machines').values({ id: machineId, enrolled_at: tx.now, ...columnsOf(inventory) }));
  saveGpus(tx, machineId, inventory.gpus);
}

/**
 * Records the present inventory of a known machine, as far as it differs from the stored one. Returns whether the GPUs were stored like
 * this before.
 */
export function updateInventory(tx: Tx, machine: Row<'machines'>, inventory: Inventory): boolean {
  const columns = columnsOf(inventory);
  const names = Object.keys(columns) as (keyof typeof columns)[];
  if (names.some((name) => columns[name] !== machine[name]))
    tx.run(query.updateTable('machines').set(columns).where('id', '=', machine.id));
  if (areStored(tx, machine.id, inventory.gpus)) return true;
  saveGpus(tx, machine.id, inventory.gpus);
  return false;
}

/** Tells whether {@link saveGpus} would change nothing. */
function areStored(tx: Tx, machineId: string, reported: readonly Gpu[]): boolean {
  const gpus = reported.map(judged);
  const stored = new Map(tx.all(presentGpus({ machineId })).map((row) => [row.uuid, row]));
  const isStored = ({ uuid, index, model, memoryMb, healthy, reason, missing = false, sharesMemory = false }: Gpu) => {
    const row = stored.get(uuid);
    if (row?.position !== index || row.model !== model || row.memory_mb !== memoryMb) return false;
    if ((row.missing === 1) !== missing || (row.shares_memory === 1) !== sharesMemory) return false;
    return (row.healthy === 1) === healthy && (row.reason ?? '') === reason;
  };
  return stored.size === gpus.length && gpus.every(isStored);
}

/** Tells whether the present GPUs of a machine, their health and which are missing are stored as reported. */
export function isHealthStored(tx: Tx, machineId: string, reported: readonly Gpu[]): boolean {
  const gpus = reported.map(judged);
  const stored = new Map(tx.all(presentGpus({ machineId })).map((row) => [row.uuid, row]));
  const isStored = ({ uuid, healthy, missing = false }: Gpu) => {
    const row = stored.get(uuid);
    return row !== undefined && (row.healthy === 1) === healthy && (row.missing === 1) === missing;
  };
  return stored.size === gpus.length && gpus.every(isStored);
}

/** Returns a GPU as it is stored: one without memory is not offered, whatever an older agent makes of it. */
function judged(gpu: Gpu): Gpu {
  if (gpu.memoryMb > 0 || !gpu.healthy) return gpu;
  return { ...gpu, healthy: false, reason: 'the host reports no memory of it; upgrade its agent' };
}

const presentGpus = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('gpus')
    .select(['uuid', 'position', 'model', 'memory_mb', 'healthy', 'reason', 'missing', 'shares_memory'])
    .where('machine_id', '=', machineId)
    .where('present', '=', sql.lit(1)),
);

/** Most GPUs that are recorded for one machine: four times as many as it can have at once. */
const MOST_KNOWN = 256;

/**
 * Records the GPUs that a machine reports. A GPU that it no longer reports becomes unhealthy but stays recorded, because an instance
 * can hold it. A GPU that belongs to no machine belongs to this one from now on. When a machine has had more than {@link MOST_KNOWN}
 * GPUs, those that no instance and no quarantine needs are deleted. If that is not enough, the host is inventing GPUs, and is refused
 * with VALIDATION_FAILED.
 */
export function saveGpus(tx: Tx, machineId: string, reported: readonly Gpu[]): void {
  const gpus = reported.map(judged);
  makeRoom(tx, machineId, gpus);
  tx.run(
    query
      .updateTable('gpus')
      .set({ healthy: 0, reason: 'the host no longer reports it', present: 0, missing: 0 })
      .where('machine_id', '=', machineId)
      .where(
        'uuid',
        'not in',
        gpus.map((gpu) => gpu.uuid),
      ),
  );
  for (const gpu of gpus) {
    const state = {
      position: gpu.index,
      model: gpu.model,
      memory_mb: gpu.memoryMb,
      healthy: gpu.healthy ? (1 as const) : (0 as const),
      reason: gpu.reason || null,
      missing: gpu.missing ? (1 as const) : (0 as const),
      shares_memory: gpu.sharesMemory ? (1 as const) : (0 as const),
      present: 1 as const,
      seen_at: tx.now,
    };
    tx.run(
      query
        .insertInto('gpus')
        .values({ machine_id: machineId, uuid: gpu.uuid, ...state })
        .onConflict((conflict) =>
          conflict.columns(['machine_id', 'uuid']).doUpdateSet({ ...state, seen_at: SEEN_SINCE }),
        ),
    );
  }
  takeFreeGpus(
    tx,
    gpus.map(({ uuid }) => uuid),
  );
  noteModel(tx, machineId);
}

/** Writes the model of the machine's first GPU into its offers, by which operators filter them. */
function noteModel(tx: Tx, machineId: string): void {
  const [first] = findGpus(tx, machineId);
  const its = query.updateTable('offers').where('machine_id', '=', machineId);
  tx.run(its.set({ gpu_model: first?.model ?? null }).where('gpu_model', 'is not', first?.model ?? null));
}

/** Keeps `seen_at` of a GPU that was reported all the time; sets it for one that is reported again. */
const SEEN_SINCE = sql<number>`CASE gpus.present WHEN 1 THEN gpus.seen_at ELSE excluded.seen_at END`;

function makeRoom(tx: Tx, machineId: string, gpus: readonly Gpu[]): void {
  const uuids = gpus.map((gpu) => gpu.uuid);
  const others = query.selectFrom('gpus').where('machine_id', '=', machineId).where('uuid', 'not in', uuids);
  const known = () => tx.get(others.select(({ fn }) => fn.countAll<number>().as('count')))?.count ?? 0;
  if (known() + gpus.length <= MOST_KNOWN) return;
  const claimed = query.selectFrom('gpu_claims').select('gpu_uuid').where('machine_id', '=', machineId);
  const wanted = query
    .selectFrom('instance_gpus')
    .innerJoin('instances', 'instances.id', 'instance_gpus.instance_id')
    .select('gpu_uuid')
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed'));
  const apart = query
    .selectFrom('quarantine_gpus')
    .innerJoin('quarantine', 'quarantine.id', 'quarantine_gpus.quarantine_id')
    .select('gpu_uuid')
    .where('machine_id', '=', machineId);
  const needless = tx.all(
    query
      .selectFrom('gpus')
      .select('uuid')
      .where('machine_id', '=', machineId)
      .where('uuid', 'not in', uuids)
      .where('uuid', 'not in', claimed)
      .where('uuid', 'not in', wanted)
      .where('uuid', 'not in', apart),
  );
  const deleted = needless.map(({ uuid }) => uuid);
  tx.run(query.deleteFrom('gpus').where('machine_id', '=', machineId).where('uuid', 'in', listOf(deleted)));
  takeFreeGpus(tx, deleted);
  if (known() + gpus.length > MOST_KNOWN)
    throw invalidField(
      'gpus',
      `this machine has reported more than ${MOST_KNOWN} different GPUs; enroll its host as a new machine`,
    );
}

function columnsOf(inventory: Inventory) {
  return {
    name: seenName(inventory.name),
    region: seenName(inventory.region),
    public_address: inventory.publicAddress,
    browser_host: browserHost(inventory.publicAddress) ?? '',
    arch: inventory.arch,
    cpu_model: inventory.cpuModel,
    cpu_cores: inventory.cpuCores,
    memory_mb: inventory.memoryMb,
    disk_gb: inventory.diskGb,
    disk_quota: inventory.diskQuota,
    driver_version: inventory.driverVersion || null,
    cuda_version: inventory.cudaVersion || null,
    vm_capable: inventory.vmCapable ? (1 as const) : (0 as const),
    access_replaceable: inventory.accessReplaceable ? (1 as const) : (0 as const),
    gpu_release_supported: inventory.gpuReleaseSupported ? (1 as const) : (0 as const),
  };
}
