import { isIP } from 'node:net';
import { LONGEST_OF_FINDING, MOST_FINDINGS } from '../../../shared/finding.js';
import {
  Verdict,
  type EarlierHost,
  type FindingReport,
  type Gpu,
  type GpuMeasurement,
  type Heartbeat,
  type Hello,
  type Inventory,
  type Measurement,
  type MeasurementReport,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { GPU_UUID } from '../../../shared/gpus/gpu-uuid.js';
import { isUuid } from '../../../shared/ids.js';
import { MEASURED_FIELDS, MEASURED_GPU_FIELDS, type Field, type GpuField } from '../../../shared/measurement.js';
import { UNPLAIN, isSeen } from '../../../shared/plain-text.js';
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import { invalidField } from '../../domain/refusal.js';

const MAX_GPUS = 64;
const MAX_EARLIER_HOSTS = 64;
const MAX_INSTANCES = 1_000;
const MAX_SEQUENCE = 1_000_000_000;
export const MAX_RUN_ID_CHARS = 64;
/** The latest time that a date can have, in milliseconds since 1970. */
const LATEST_MS = 8.64e15;
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
  validateTexts(inventory, TEXTS);
  for (const [name, highest] of entriesOf(NUMBERS)) {
    if (inventory[name] > highest) throw invalidField(name, `is more than ${highest}`);
  }
  if (!isIP(inventory.publicAddress) && !HOST_NAME.test(inventory.publicAddress)) {
    throw invalidField('publicAddress', 'is neither an IP address nor a host name');
  }
  validateGpus(inventory.gpus);
}

/** Refuses with VALIDATION_FAILED names of a new host of which people do not see all. Hosts that have such a name already keep on. */
export function validateNames(inventory: Inventory): void {
  for (const name of ['name', 'region'] as const)
    if (!isSeen(inventory[name])) throw invalidField(name, 'has characters that are not shown');
}

/** Checks texts of a host that are shown to people: each has at most so many characters, and none that is not shown. */
function validateTexts<Name extends string>(
  texts: Readonly<Record<NoInfer<Name>, string>>,
  most: Readonly<Record<Name, number>>,
) {
  for (const [name, longest] of entriesOf(most)) {
    if (texts[name].length > longest) throw invalidField(name, `has more than ${longest} characters`);
    if (UNPLAIN.test(texts[name])) throw invalidField(name, 'has characters that are not shown');
  }
}

export function validateGpus(gpus: readonly Gpu[]): void {
  if (gpus.length > MAX_GPUS) throw invalidField('gpus', `has more than ${MAX_GPUS} GPUs`);
  if (new Set(gpus.map(({ uuid }) => uuid)).size < gpus.length) throw invalidField('gpus', 'has a duplicate UUID');
  if (!gpus.every(({ uuid }) => GPU_UUID.test(uuid)))
    throw invalidField(
      'gpus',
      'has a UUID that is not "GPU-" and a UUID in small letters, as NVIDIA’s driver spells it',
    );
  if (gpus.some(({ memoryMb }) => memoryMb > NUMBERS.memoryMb))
    throw invalidField('gpus', `has one with more than ${NUMBERS.memoryMb} MB of memory`);
  if (gpus.some(({ model, reason }) => model.length > 128 || reason.length > 512))
    throw invalidField('gpus', 'has a model or reason that is too long');
  if (gpus.some(({ model }) => UNPLAIN.test(model) || !isSeen(model)))
    throw invalidField('gpus', 'has a model with characters that are not shown');
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
    if (gpuUuids.length > MAX_GPUS || !gpuUuids.every((uuid) => GPU_UUID.test(uuid))) {
      throw invalidField('instances', 'has a workload with too many GPUs, or with a GPU UUID that no driver gives');
    }
  }
}

export function validateHeartbeat({ gpus, running, atMs, dockerAheadMs = 0 }: Heartbeat): void {
  if (Math.max(atMs, Math.abs(dockerAheadMs)) > LATEST_MS)
    throw invalidField('clock', 'shows a time that no clock shows');
  validateGpus(gpus);
  if (running.length > MAX_INSTANCES) throw invalidField('running', `has more than ${MAX_INSTANCES} runs`);
  if (running.some(({ runId }) => runId.length > MAX_RUN_ID_CHARS)) {
    throw invalidField('running', `has a run id of more than ${MAX_RUN_ID_CHARS} characters`);
  }
}

export function validateFindings({ findings }: FindingReport): void {
  if (findings.length > MOST_FINDINGS) throw invalidField('findings', `has more than ${MOST_FINDINGS} findings`);
  for (const finding of findings) {
    validateTexts(finding, LONGEST_OF_FINDING);
    if (finding.verdict < Verdict.VERDICT_OK || finding.verdict > Verdict.VERDICT_FAILURE)
      throw invalidField('verdict', 'is not one that this control plane knows');
  }
}

/** An honest agent sends 500 at once. */
const MAX_MINUTES = 1_000;
/** An honest agent keeps an hour. */
const LONGEST_AGO_MS = HOUR_MS + 10 * MINUTE_MS;
const [MOST_MILLIS, MOST_BYTES, MOST_CONNECTIONS] = [1_000 * NUMBERS.cpuCores, 1e15, 1e6];
/** The highest values that a machine can have. */
const MEASURED: Readonly<Record<Field, number>> = {
  cpuMillis: MOST_MILLIS,
  cpuMaxMillis: MOST_MILLIS,
  cpuLimitMillis: MOST_MILLIS,
  memoryUsedBytes: MOST_BYTES,
  memoryLimitBytes: MOST_BYTES,
  diskUsedBytes: MOST_BYTES,
  diskLimitBytes: MOST_BYTES,
  networkInBytes: MOST_BYTES,
  networkOutBytes: MOST_BYTES,
  sshSessions: MOST_CONNECTIONS,
  portConnections: MOST_CONNECTIONS,
  connectionsOpened: MOST_BYTES,
};
const MEASURED_OF_GPU: Readonly<Record<GpuField, number>> = {
  usePercent: 100,
  useMaxPercent: 100,
  memoryUsedBytes: MOST_BYTES,
  memoryTotalBytes: MOST_BYTES,
  powerWatts: 10_000,
  temperatureCelsius: 1_000,
};

export function validateMeasurementReport({ instances }: MeasurementReport): void {
  if (instances.length > MAX_INSTANCES) throw invalidField('instances', `has more than ${MAX_INSTANCES} instances`);
  if (new Set(instances.map(({ instanceId }) => instanceId)).size < instances.length)
    throw invalidField('instances', 'has a duplicate instance id');
  validateMeasurements(instances.flatMap(({ minutes }) => minutes));
}

/** Checks what a host says that instances have used: the numbers are ones that a machine can have, and no older than an hour. */
export function validateMeasurements(measurements: readonly Measurement[]): void {
  if (measurements.length > MAX_MINUTES)
    throw invalidField('measurements', `has more than ${MAX_MINUTES} measurements`);
  for (const measurement of measurements) {
    if (measurement.endedMsAgo > LONGEST_AGO_MS) throw invalidField('measurements', 'has one that is too old');
    if (measurement.gpus.length > MAX_GPUS) throw invalidField('measurements', `has more than ${MAX_GPUS} GPUs`);
    const isPossible =
      MEASURED_FIELDS.every((name) => (measurement[name] ?? 0) <= MEASURED[name]) &&
      measurement.gpus.every(isPossibleUse);
    if (!isPossible) throw invalidField('measurements', 'has a number that no machine can have');
  }
}

function isPossibleUse(gpu: GpuMeasurement): boolean {
  return MEASURED_GPU_FIELDS.every((name) => (gpu[name] ?? 0) <= MEASURED_OF_GPU[name]);
}

function entriesOf<T extends object>(object: T): [keyof T, T[keyof T]][] {
  return Object.entries(object) as [keyof T, T[keyof T]][];
}
