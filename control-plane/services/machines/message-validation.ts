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

/** What a host says of itself before any of it is kept. Refuses with VALIDATION_FAILED what no honest host would say. */
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
  if (gpus.length > MAX_GPUS) throw invalidField('gpus', `there are more than ${MAX_GPUS}`);
  if (new Set(gpus.map(({ uuid }) => uuid)).size < gpus.length) throw invalidField('gpus', 'a UUID stands there twice');
  if (
    gpus.some(({ uuid, model, reason }) => uuid.length > MAX_UUID_CHARS || model.length > 128 || reason.length > 512)
  ) {
    throw invalidField('gpus', 'a UUID, model or reason is too long');
  }
}

export function validateEarlierHosts(earlier: readonly EarlierHost[]): void {
  if (earlier.length > MAX_EARLIER_HOSTS) throw invalidField('earlier', `there are more than ${MAX_EARLIER_HOSTS}`);
}

export function validateHello({ inventory, instances, bootId, agentVersion }: Hello): void {
  if (inventory) validateInventory(inventory);
  if (bootId.length > 64 || agentVersion.length > 64) throw invalidField('hello', 'boot id or version is too long');
  if (instances.length > MAX_INSTANCES) throw invalidField('instances', `there are more than ${MAX_INSTANCES}`);
  if (new Set(instances.map(({ instanceId }) => instanceId)).size < instances.length) {
    throw invalidField('instances', 'an id stands there twice');
  }
  for (const { instanceId, sequence, gpuUuids, diskGb } of instances) {
    if (diskGb > NUMBERS.diskGb) throw invalidField('instances', `a disk is larger than ${NUMBERS.diskGb} GB`);
    if (!isUuid(instanceId)) throw invalidField('instances', 'an id is no UUID');
    if (sequence > MAX_SEQUENCE) throw invalidField('instances', 'a sequence is higher than any that was ever given');
    if (gpuUuids.length > MAX_GPUS || gpuUuids.some((uuid) => uuid.length > MAX_UUID_CHARS)) {
      throw invalidField('instances', 'a workload names too many GPUs, or too long ones');
    }
  }
}

export function validateHeartbeat({ gpus, running }: Heartbeat): void {
  validateGpus(gpus);
  if (running.length > MAX_INSTANCES) throw invalidField('running', `there are more than ${MAX_INSTANCES}`);
  if (running.some(({ runId }) => runId.length > MAX_RUN_ID_CHARS)) {
    throw invalidField('running', `a run's id has more than ${MAX_RUN_ID_CHARS} characters`);
  }
}

function entriesOf<T extends object>(object: T): [keyof T, T[keyof T]][] {
  return Object.entries(object) as [keyof T, T[keyof T]][];
}
