import { createHash } from 'node:crypto';
import { messageOf } from '../../../../shared/coded-error.js';
import { MINUTE_MS } from '../../../../shared/time.js';
import { judgeDisk, type BaseDisk } from '../../../domain/disk-image.js';
import { Failure } from '../../../domain/failure.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from '../engine.js';
import type { ImageCache } from '../images/image-cache.js';
import { inspectImage, requireNamed, type LocalImage } from '../images/images.js';
import { DISK_IMAGES } from '../images/pulled-images.js';
import { baseDiskArchive } from './disk-archive.js';
import type { RunnerJobs } from './runner-job.js';

const LABEL = { format: 'gpurent.vm.format', size: 'gpurent.vm.size', firmware: 'gpurent.vm.firmware' } as const;
/** COPY_MS and INSPECT_MS together are less than the time that the control plane waits for progress. */
const COPY_MS = 10 * MINUTE_MS;
const INSPECT_MS = 5 * MINUTE_MS;

type Put = (archive: NodeJS.ReadableStream, signal: AbortSignal) => Promise<unknown>;

export interface PreparedDisk extends BaseDisk {
  /** ID of an image that is the runner with the disk in it. */
  imageId: string;
}

/**
 * Prepares the disks that renters' images contain, each once per host. It checks a disk and adds it to an image of the
 * runner, so that nothing else of a renter's image is ever read or run. Docker keeps these images; the image cache
 * removes them.
 */
export class BaseDisks {
  private readonly making = new Map<string, Promise<void>>();

  constructor(
    private readonly engine: Engine,
    private readonly jobs: RunnerJobs,
    private readonly cache: ImageCache,
    private readonly runner: string,
  ) {}

  /**
   * Returns the prepared disk of an image, preparing it first if needed. A file of more than `maxBytes` is not copied.
   * Throws Failure IMAGE_UNAVAILABLE, which says what is wrong with the disk.
   */
  async ensure(image: LocalImage, maxBytes: number): Promise<PreparedDisk> {
    const name = await this.nameOf(image);
    const known = await this.find(image);
    if (known) return known;
    const key = `${name} ${maxBytes}`;
    const make = () => this.make(image, name, maxBytes).finally(() => this.making.delete(key));
    const making = this.making.get(key) ?? make();
    this.making.set(key, making);
    await making;
    const made = await this.find(image);
    if (!made) throw new Failure('IMAGE_UNAVAILABLE', `the disk of ${image.reference} is no longer on this host`);
    return made;
  }

  async find(image: LocalImage): Promise<PreparedDisk | undefined> {
    const found = await inspectImage(this.engine, await this.nameOf(image));
    const labels = found?.Config.Labels as Record<string, string> | null | undefined;
    if (!found || !labels) return undefined;
    await this.cache.fetched({ id: found.Id });
    return {
      imageId: found.Id,
      format: labels[LABEL.format] === 'qcow2' ? 'qcow2' : 'raw',
      size: Number(labels[LABEL.size]),
      firmware: labels[LABEL.firmware] === 'uefi' ? 'uefi' : 'bios',
    };
  }

  /** Returns the name of the image with the disk. Each version of the runner has its own. */
  private async nameOf(image: LocalImage): Promise<string> {
    const runner = await requireNamed(this.engine, this.runner, this.runner);
    return `${DISK_IMAGES}:${createHash('sha256').update(`${runner.id} ${image.id}`).digest('hex').slice(0, 40)}`;
  }

  private async make(image: LocalImage, name: string, maxBytes: number): Promise<void> {
    try {
      await this.jobs.with({ task: 'inspect', env: [], host: {} }, async (container) => {
        await this.copyDisk(image, maxBytes, (archive, abortSignal) =>
          this.engine.call('copy the disk', COPY_MS, () => container.putArchive(archive, { path: '/', abortSignal })),
        );
        const { exitCode, lines } = await this.jobs.run(container, INSPECT_MS);
        const disk = judgeDisk(lines);
        if (typeof disk === 'string') throw new Failure('IMAGE_UNAVAILABLE', disk);
        if (exitCode !== 0) throw new Failure('IMAGE_UNAVAILABLE', `its disk cannot be read: ${lines.at(-1) ?? ''}`);
        const [repo, tag] = name.split(':');
        const changes = Object.entries(LABEL).map(([key, label]) => `LABEL ${label}="${disk[key as keyof BaseDisk]}"`);
        await this.engine.call('keep the disk', COPY_MS, () =>
          container.commit({ repo, tag, changes: changes.join('\n') }),
        );
      });
    } catch (error) {
      if (error instanceof Failure && error.code !== 'IMAGE_UNAVAILABLE') throw error;
      const reason = error instanceof Failure ? messageOf(error) : reasonOf(error);
      throw new Failure('IMAGE_UNAVAILABLE', `no virtual machine can be made of ${image.reference}: ${reason}`, {
        cause: error,
      });
    }
  }

  private async copyDisk(image: LocalImage, maxBytes: number, put: Put): Promise<void> {
    // The container is never started, so its command does not matter.
    await this.jobs.withContainer({ Image: image.id, Entrypoint: ['/none'], Cmd: [] }, async (source) => {
      const archive = await this.engine
        .call('read the disk', DEADLINE_MS.create, () => source.getArchive({ path: '/disk' }))
        .catch((error: unknown) => {
          if (statusOf(error) !== 404) throw error;
          throw new Failure('IMAGE_UNAVAILABLE', 'it has no folder /disk with a disk in it');
        });
      const refused = new AbortController();
      const disk = baseDiskArchive(archive, maxBytes).on('error', (error) => refused.abort(error));
      // The error of the archive says more than Docker's, which is only that the archive was incomplete.
      await put(disk, refused.signal)
        .catch((error: unknown) => {
          throw refused.signal.aborted ? refused.signal.reason : error;
        })
        .finally(() => {
          refused.abort();
          disk.destroy();
          // Docker does not remove a container that it still reads from.
          (archive as unknown as { destroy(): void }).destroy();
        });
    });
  }
}
