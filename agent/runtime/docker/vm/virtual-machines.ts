import type { Clock } from '../../../../shared/clock.js';
import type { WorkloadSpec } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import { seedOf } from '../../../domain/cloud-init.js';
import { Failure } from '../../../domain/failure.js';
import { RUNNER_ID, machineSize, type VmSettings } from '../../../domain/virtual-machine.js';
import { addressesOf } from '../../../domain/ports.js';
import type { Passthrough } from '../../../host/gpus/driver.js';
import { openFilesLimit } from '../../../host/limits.js';
import type { OnProgress, WorkloadInfo } from '../../workload.js';
import { DEADLINE_MS, type Engine } from '../engine.js';
import type { Images } from '../images/images.js';
import type { PreparedWorkload, DockerHost, WorkloadKind } from '../workload-kind.js';
import type { BaseDisks, PreparedDisk } from './base-disks.js';
import { archiveOf } from './disk-archive.js';
import { hostNamespace } from './host-namespace.js';
import { passedSetting, vmOptions } from './vm-options.js';
import { accessTo, type VmSupport } from './vm-support.js';
import { containerName } from '../labels.js';

const GB = 1_000_000_000;
/** Time for the runner to power off a guest that has not shut down. */
const POWER_OFF_S = 10;
/** Time for a guest that has only just booted to shut down; on an emulated processor it takes much longer. */
const LEAST_GRACE_S = { kvm: 20, tcg: 120 } as const;

export interface VmParts {
  engine: Engine;
  clock: Clock;
  host: DockerHost;
  images: Images;
  disks: BaseDisks;
  support: VmSupport;
  passthrough: Passthrough;
  settings: VmSettings;
}

/** Runs workloads as virtual machines: a container of ours with QEMU, and in it the disk from the renter's image. */
export class VirtualMachines implements WorkloadKind {
  readonly graceS: number;
  readonly leastGraceS: number;

  constructor(private readonly parts: VmParts) {
    const { settings } = parts;
    this.graceS = settings.stopSeconds + POWER_OFF_S;
    this.leastGraceS = Math.min(LEAST_GRACE_S[settings.accelerator ?? 'kvm'], this.graceS);
  }

  async fetch(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void> {
    const reason = await this.parts.support.whyUnsupported();
    if (reason !== undefined) throw new Failure('CONTAINER_FAILED', `this host cannot run virtual machines: ${reason}`);
    const image = await this.parts.images.fetch({ spec, onProgress, signal });
    onProgress('preparing', 'preparing the disk from the image');
    const { size } = await orAborted(this.parts.disks.ensure(image, spec.diskGb * GB), signal);
    if (size > spec.diskGb * GB) throw tooLarge(image.reference, size, spec.diskGb);
    onProgress('prepared', 'the disk is ready; the machine is powered on, and runs once its SSH answers');
  }

  async prepareWorkload(spec: WorkloadSpec): Promise<PreparedWorkload> {
    const image = await this.parts.images.require(spec.image);
    const disk = await this.parts.disks.find(image);
    if (!disk) throw new Failure('IMAGE_UNAVAILABLE', `the disk of ${image.reference} is no longer on this host`);
    return { reference: image.reference, create: (info, network) => this.create(spec, disk, info, network) };
  }

  async prepare({ instanceId, gpuUuids }: WorkloadInfo): Promise<void> {
    await this.checkDevices(instanceId, gpuUuids);
    await this.parts.passthrough.take(gpuUuids);
  }

  async forget(): Promise<void> {}

  async forgetAllBut(): Promise<void> {}

  /**
   * Throws Failure GPUS_UNAVAILABLE unless the host's devices are still those that the container was created with,
   * which cannot change.
   */
  private async checkDevices(instanceId: string, gpuUuids: readonly string[]): Promise<void> {
    const { paths, addresses } = await this.parts.passthrough.devices(gpuUuids);
    if (addresses.length === 0) return;
    const { Config, HostConfig } = await this.parts.engine.call('inspect the machine', DEADLINE_MS.inspect, (docker) =>
      docker.getContainer(containerName(instanceId)).inspect(),
    );
    const given = ((HostConfig.Devices ?? []) as { PathOnHost: string }[]).map(({ PathOnHost }) => PathOnHost);
    const isSame = Config.Env.includes(passedSetting(addresses)) && paths.every((path) => given.includes(path));
    if (!isSame)
      throw new Failure(
        'GPUS_UNAVAILABLE',
        'the GPUs of this virtual machine are in other slots or IOMMU groups of the host than when it was created; the host owner must move them back',
      );
  }

  private async create(spec: WorkloadSpec, disk: PreparedDisk, info: WorkloadInfo, network: string): Promise<void> {
    const accelerator = this.parts.settings.accelerator ?? 'kvm';
    const size = machineSize(spec, accelerator);
    if (!size)
      throw new Failure(
        'CONTAINER_FAILED',
        `${spec.memoryMb} MB of memory are too little for a virtual machine; choose an offer with more`,
      );
    const access = await accessTo(accelerator);
    const passed = await this.parts.passthrough.devices(spec.gpuUuids);
    const options = vmOptions(spec, {
      ...this.parts.host,
      info,
      disk,
      size,
      accelerator,
      network,
      stopSeconds: this.parts.settings.stopSeconds,
      graceS: this.graceS,
      openFiles: await openFilesLimit(),
      hasDiskQuota: await this.parts.host.hasDiskQuota(),
      devices: [...access.devices, ...passed.paths],
      groups: access.groups,
      namespace: await hostNamespace(this.parts.engine),
      passed: passed.addresses,
    });
    const container = await this.parts.engine.callTracked(
      info.instanceId,
      'create the machine',
      DEADLINE_MS.create,
      (docker) => docker.createContainer(options),
    );
    const seed = seedOf({ ...spec, instanceId: info.instanceId, env: await this.environmentOf(spec, info) });
    const files = Object.fromEntries(Object.entries(seed).map(([name, text]) => [`vm/seed/${name}`, text]));
    await this.parts.engine.callTracked(info.instanceId, 'write the seed', DEADLINE_MS.create, () =>
      container.putArchive(archiveOf(files, RUNNER_ID), { path: '/' }),
    );
  }

  private async environmentOf(spec: WorkloadSpec, { ports }: WorkloadInfo) {
    return [...spec.env, ...addressesOf(await this.parts.host.publicAddress(), ports)];
  }
}

/** Resolves with `work`, or rejects with the abort reason of `signal`. The work itself is not cancelled. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', abort));
}

function tooLarge(image: string, bytes: number, rentedGb: number): Failure {
  const needed = Math.ceil(bytes / GB);
  return new Failure(
    'IMAGE_UNAVAILABLE',
    `the disk of ${image} has ${needed} GB and ${rentedGb} were rented: deploy with disk_gb ${needed} or more`,
  );
}
