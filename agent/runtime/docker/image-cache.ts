import type { ImageInfo } from 'dockerode';
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Clock } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import type { Logger } from '../../../shared/logger.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from './engine.js';

/** With less of the file system free, images that nobody uses go, those that were used longest ago first. */
const PRESSURE_SHARE = 0.12;
/** Until so much is free. */
const RELIEF_SHARE = 0.2;
/** What was fetched for a deploy is not taken away before its container is made. */
const GRACE_MS = 60 * 60_000;

export interface CacheHost {
  /** Where it is noted which images were fetched for renters, and when they were last used. */
  file: string;
  /** Of Docker's file system, 0 to 1. */
  freeShare(): Promise<number>;
}

/** Images that were fetched for renters, and nobody else's: kept for the next one until the disk is short. */
export class ImageCache {
  private usedAt: Map<string, number> | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly clock: Clock,
    private readonly host: CacheHost,
    private readonly logger: Logger,
  ) {}

  /** An image, by its own identity, was fetched, or is about to be run. */
  async used(imageId: string, wasFetched: boolean): Promise<void> {
    const known = await this.load();
    if (!wasFetched && !known.has(imageId)) return;
    known.set(imageId, this.clock.now());
    await this.save(known);
  }

  /** Makes room where the disk is short. Answers what was removed. */
  async collect(): Promise<string[]> {
    if ((await this.host.freeShare()) >= PRESSURE_SHARE) return [];
    const removed: string[] = [];
    for (const image of await this.unused()) {
      if ((await this.host.freeShare()) >= RELIEF_SHARE) break;
      if (await this.remove(image)) removed.push(image.Id);
    }
    const known = await this.load();
    for (const id of removed) known.delete(id);
    if (removed.length > 0) await this.save(known);
    return removed;
  }

  /** Those that no container is made of, oldest use first. */
  private async unused(): Promise<ImageInfo[]> {
    const known = await this.load();
    const containers = await this.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true }),
    );
    const inUse = new Set(containers.map(({ ImageID }) => ImageID));
    const images = await this.engine.call('list images', DEADLINE_MS.inspect, (docker) => docker.listImages());
    const lastUse = ({ Id }: ImageInfo) => known.get(Id) ?? Infinity;
    return images
      .filter((image) => !inUse.has(image.Id) && lastUse(image) <= this.clock.now() - GRACE_MS)
      .sort((one, other) => lastUse(one) - lastUse(other));
  }

  /** Never by force: what is used after all stays. */
  private async remove({ Id, RepoTags, RepoDigests }: ImageInfo): Promise<boolean> {
    const named = [...((RepoTags as string[] | null) ?? []), ...((RepoDigests as string[] | null) ?? [])];
    const names = named.filter((name) => !name.includes('<none>'));
    try {
      for (const name of names.length > 0 ? names : [Id]) {
        await this.engine
          .call('remove an image', DEADLINE_MS.remove, (docker) => imageOf(docker, name).remove())
          .catch((error: unknown) => {
            // Its digests go with its last name.
            if (statusOf(error) !== 404) throw error;
          });
      }
    } catch (error) {
      this.logger.warn({ image: Id }, `an image could not be removed: ${messageOf(error)}`);
      return false;
    }
    this.logger.info({ image: Id, names }, 'an image was removed, for the disk is short');
    return true;
  }

  private async load(): Promise<Map<string, number>> {
    this.usedAt ??= new Map(
      await readFile(this.host.file, 'utf8')
        .then((text) => Object.entries(JSON.parse(text) as Record<string, number>))
        .catch(() => []),
    );
    return this.usedAt;
  }

  private save(known: Map<string, number>): Promise<void> {
    this.writing = this.writing
      .then(async () => {
        const { file } = this.host;
        await writeFile(`${file}.new`, JSON.stringify(Object.fromEntries(known)), { mode: 0o600 });
        await rename(`${file}.new`, file);
      })
      // Nobody's deploy fails for it: what is not noted is not removed.
      .catch((error: unknown) => this.logger.warn(`the use of an image could not be noted: ${messageOf(error)}`));
    return this.writing;
  }
}
