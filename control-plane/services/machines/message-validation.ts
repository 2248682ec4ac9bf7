import { isIP } from 'node:net';
import type { EarlierHost, Gpu, Heartbeat, Hello, Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { isUuid } from '../../../shared/ids.js';
import { invalidField } from '../../domain/refusal.js';

const MAX_GPUS = 64;
const MAX_EARLIER_HOSTS = 64;
const MAX_INSTANCES = 1_000;
const MAX_SEQUENCE = 1_000_000_000;
const MAX_UUID_CHARS = 64;
export const MAX_RUN_ID_CHARS = 64;
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;
const TEXTS = {
  name: 64,
  region: 64,
  arch: 32,
  cpuModel: 128,
  diskQuota: 32,
  driverVersion: 32,
  cudaVersion: 32,
} as const;
const NUMBERS = { cpuCores: 4_096, memoryMb: 1_000_000_000, diskGb: 1_000_000 } as const;

/** Checks the inventory of a host before it is stored. Refuses with VALIDATION_FAILED what no honest agent would send. */
export function validateInventory(inventory: Inventory): void {
  for (const [name, longest] of entriesOf(TEXTS)) {
    if (inventory[name].length > longest) throw invalidField(name, `has more than ${longest} characters`);
  }
  for (const [name, highest] of entriesOf(NUMBERS)) {
    if (inventory[name] > highest) throw invalidField(name, `is more than ${highest}`);
  }
  if (!isIP(inventory.publicAddress) && !HOST_NAME.test(inventory.publicAddress)) {
    throw invalidField('publicAddress', 'is neither an IP address nor a host name');
  }
  validateGpus(inventory.gpus);
}

export function validateGpus(gpus: readonly Gpu[]): void {
  if (gpus.length > MAX_GPUS) throw invalidField('gpus', `has more than ${MAX_GPUS} GPUs`);
  if (new Set(gpus.map(({ uuid }) => uuid)).size < gpus.length) throw invalidField('gpus', 'has a duplicate UUID');
  if (
    gpus.some(({ uuid, model, reason }) => uuid.length > MAX_UUID_CHARS || model.length > 128 || reason.length > 512)
  ) {
    throw invalidField('gpus', 'has a UUID, model or reason that is too long');
  }
}

export function validateEarlierHosts(earlier: readonly EarlierHost[]): void {
  if (earlier.length > MAX_EARLIER_HOSTS) throw invalidField('earlier', `has more than ${MAX_EARLIER_HOSTS} hosts`);
}

export function validateHello({ inventory, instances, bootId, agentVersion }: Hello): void {
  if (inventory) validateInventory(inventory);
  if (bootId.length > 64 || agentVersion.length > 64)
    throw invalidField('hello', 'has a boot id or an agent version that is too long');
  if (instances.length > MAX_INSTANCES) throw invalidField('instances', `has more than ${MAX_INSTANCES} workloads`);
  if (new Set(instances.map(({ instanceId }) => instanceId)).size < instances.length) {
    throw invalidField('instances', 'has a duplicate instance id');
  }
  for (const { instanceId, sequence, gpuUuids, diskGb } of instances) {
    if (diskGb > NUMBERS.diskGb) throw invalidField('instances', `has a disk of more than ${NUMBERS.diskGb} GB`);
    if (!isUuid(instanceId)) throw invalidField('instances', 'has an instance id that is not a UUID');
    if (sequence > MAX_SEQUENCE) throw invalidField('instances', `has a sequence of more than ${MAX_SEQUENCE}`);
    if (gpuUuids.length > MAX_GPUS || gpuUuids.some((uuid) => uuid.length > MAX_UUID_CHARS)) {
      throw invalidField('instances', 'has a workload with too many GPUs, or with a GPU UUID that is too long');
    }
  }
}

export function validateHeartbeat({ gpus, running }: Heartbeat): void {
  validateGpus(gpus);
  if (running.length > MAX_INSTANCES) throw invalidField('running', `has more than ${MAX_INSTANCES} runs`);
  if (running.some(({ runId }) => runId.length > MAX_RUN_ID_CHARS)) {
    throw invalidField('running', `has a run id of more than ${MAX_RUN_ID_CHARS} characters`);
  }
}

function entriesOf<T extends object>(object: T): [keyof T, T[keyof T]][] {
  return Object.entries(object) as [keyof T, T[keyof T]][];
}
