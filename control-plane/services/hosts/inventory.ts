import type { Gpu, Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** Records a new machine with what it says of itself. */
export function saveInventory(tx: Tx, machineId: string, inventory: Inventory): void {
  tx.run(query.insertInto('machines').values({ id: machineId, enrolled_at: tx.now, ...columnsOf(inventory) }));
  saveGpus(tx, machineId, inventory.gpus);
}

/** Records what a known machine says of itself now. */
export function updateInventory(tx: Tx, machineId: string, inventory: Inventory): void {
  tx.run(query.updateTable('machines').set(columnsOf(inventory)).where('id', '=', machineId));
  saveGpus(tx, machineId, inventory.gpus);
}

/** A GPU that is no longer reported stays known, unhealthy: it may be claimed. */
export function saveGpus(tx: Tx, machineId: string, gpus: readonly Gpu[]): void {
  tx.run(
    query
      .updateTable('gpus')
      .set({ healthy: 0, reason: 'the host no longer reports it', present: 0 })
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
      present: 1 as const,
    };
    tx.run(
      query
        .insertInto('gpus')
        .values({ machine_id: machineId, uuid: gpu.uuid, ...state })
        .onConflict((conflict) => conflict.columns(['machine_id', 'uuid']).doUpdateSet(state)),
    );
  }
}

function columnsOf(inventory: Inventory) {
  return {
    name: inventory.name,
    region: inventory.region,
    public_address: inventory.publicAddress,
    arch: inventory.arch,
    cpu_model: inventory.cpuModel,
    cpu_cores: inventory.cpuCores,
    memory_mb: inventory.memoryMb,
    disk_gb: inventory.diskGb,
    disk_quota: inventory.diskQuota,
    driver_version: inventory.driverVersion || null,
    cuda_version: inventory.cudaVersion || null,
    vm_capable: inventory.vmCapable ? (1 as const) : (0 as const),
    gpu_release_supported: inventory.gpuReleaseSupported ? (1 as const) : (0 as const),
  };
}
