import { posix } from 'node:path';
import type { WorkloadSpec } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../../../domain/failure.js';
import type { GpuDriver } from '../../../host/gpus/driver.js';
import { openFilesLimit } from '../../../host/limits.js';
import type { OnProgress, ExistingWorkload, WorkloadInfo } from '../../workload.js';
import type { AccessFiles } from '../files/access-files.js';
import { checkAccountFiles } from '../files/account-files.js';
import { containerOptions } from './container-options.js';
import { DEADLINE_MS, type Engine } from '../engine.js';
import type { EtcFiles } from '../files/etc-files.js';
import type { Images, LocalImage } from '../images/images.js';
import type { PreparedWorkload, DockerHost, WorkloadKind } from '../workload-kind.js';

/** Runs workloads as containers of their renter's image. */
export class Containers implements WorkloadKind {
  readonly graceS = 10;
  readonly leastGraceS = 1;

  constructor(
    private readonly engine: Engine,
    private readonly host: DockerHost,
    private readonly images: Images,
    private readonly gpus: GpuDriver,
    private readonly etcFiles: EtcFiles,
    private readonly accessFiles: AccessFiles,
  ) {}

  async fetch(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void> {
    await this.images.fetch({ spec, onProgress, signal });
  }

  async prepareWorkload(spec: WorkloadSpec): Promise<PreparedWorkload> {
    const image = await this.images.require(spec.image);
    await this.checkVolumes(image);
    checkWorkingDir(image);
    return { reference: image.reference, create: (info, network) => this.create(spec, image, info, network) };
  }

  async prepare({ instanceId, state }: ExistingWorkload): Promise<void> {
    if (state !== 'running') await checkAccountFiles(this.engine, instanceId);
    await this.etcFiles.provide(instanceId);
    await this.accessFiles.provide(instanceId);
  }

  forget(instanceId: string): Promise<void> {
    return this.etcFiles.remove(instanceId);
  }

  forgetAllBut(kept: ReadonlySet<string>): Promise<void> {
    return this.etcFiles.prune(kept);
  }

  private async create(spec: WorkloadSpec, image: LocalImage, info: WorkloadInfo, network: string): Promise<void> {
    const options = containerOptions(spec, image.defaults, {
      ...this.host,
      publicAddress: await this.host.publicAddress(),
      info,
      imageId: image.id,
      network,
      openFiles: await openFilesLimit(),
      mounts: [...(await this.etcFiles.provide(info.instanceId)), await this.accessFiles.provide(info.instanceId)],
      hasDiskQuota: await this.host.hasDiskQuota(),
      gpuAttachment: this.gpus.attachment(spec.gpuUuids),
    });
    await this.engine.callTracked(info.instanceId, 'create the container', DEADLINE_MS.create, (docker) =>
      docker.createContainer(options),
    );
  }

  /**
   * Refuses volumes on a host that enforces disk sizes: Docker keeps them outside of the container, where no size limit
   * holds.
   */
  private async checkVolumes({ reference, defaults: { volumes } }: LocalImage): Promise<void> {
    if (volumes.length === 0 || !(await this.host.hasDiskQuota())) return;
    throw new Failure(
      'IMAGE_UNAVAILABLE',
      `the image ${reference} declares VOLUME ${volumes.join(', ')}, which this host cannot limit to the rented size; use an image without VOLUME`,
    );
  }
}

/**
 * Refuses a working directory in the kernel's own file systems: files that are open there have led out of containers.
 * No legitimate image has one.
 */
function checkWorkingDir({ reference, defaults: { workingDir } }: LocalImage): void {
  if (!/^\/+(proc|sys|dev)(\/|$)/.test(posix.normalize(workingDir))) return;
  throw new Failure(
    'IMAGE_UNAVAILABLE',
    `the image ${reference} has the WORKDIR ${workingDir}, in which no workload can start; use an image with another WORKDIR`,
  );
}
