import type { ImageInfo } from 'dockerode';
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Clock } from '../../../../shared/clock.js';
import { messageOf } from '../../../../shared/coded-error.js';
import type { Logger } from '../../../../shared/logger.js';
import { HOUR_MS } from '../../../../shared/time.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from '../engine.js';
import { isFetchedName } from './pulled-images.js';

/** With a smaller share of the file system free, unused images are removed, those with the oldest use first. */
const PRESSURE_SHARE = 0.12;
/** Images are removed until this share is free. */
const RELIEF_SHARE = 0.2;
/**
 * Images are kept this long after their last use, so that none is removed between its fetch and the creation of its
 * container.
 */
const GRACE_MS = HOUR_MS;
/** Most names that are kept of one image: a registry can give it any number. */
const MOST_NAMES = 32;

export interface CacheHost {
  /** File that records which images were fetched for renters, and when they were last used. */
  file: string;
  /** Returns the free share of Docker's file system, 0 to 1. */
  freeShare(): Promise<number>;
}

/** The record of an image. */
interface Entry {
  usedAt: number;
  /** The registry's digest for each of our names, the newest last; empty if Docker did not report it. */
  digests: Record<string, string>;
  /** Names from pulls without a relay. */
  plainNames?: string[];
  /** Whether it was fetched before there were relays: then all its names were given for renters. */
  isOld?: boolean;
}

/** An image that was fetched for a renter. */
export interface FetchedImage {
  id: string;
  /** Our name for it. */
  name?: string;
  digest?: string | undefined;
  plainName?: string;
}

/** Keeps images that were fetched for renters, and no other images, for the next renter until the disk is short. */
export class ImageCache {
  private known: Map<string, Entry> | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly clock: Clock,
    private readonly host: CacheHost,
    private readonly logger: Logger,
  ) {}

  /** Records an image, its use and its names. If it has more names than allowed, the oldest are removed. */
  async fetched({ id, name, digest, plainName }: FetchedImage): Promise<void> {
    const known = await this.load();
    const entry = known.get(id) ?? { usedAt: 0, digests: {} };
    known.set(id, entry);
    entry.usedAt = this.clock.now();
    // The names now belong to this image, and to no other.
    for (const each of known.values()) forgetNames(each, [name, plainName]);
    if (name !== undefined) entry.digests = { ...entry.digests, [name]: digest ?? '' };
    if (plainName !== undefined) entry.plainNames = [...(entry.plainNames ?? []), plainName];
    const surplus = [Object.keys(entry.digests), entry.plainNames ?? []].flatMap((names) =>
      names.slice(0, -MOST_NAMES),
    );
    forgetNames(entry, surplus);
    for (const old of surplus) await this.removeName(old).catch((error: unknown) => this.logger.warn(messageOf(error)));
    await this.save(known);
  }

  /** Records that an image is about to be run, if it is one of these. */
  async used(imageId: string): Promise<void> {
    const known = await this.load();
    const entry = known.get(imageId);
    if (!entry) return;
    entry.usedAt = this.clock.now();
    await this.save(known);
  }

  /** Returns the digest that the registry reported when the image was fetched under `name`. */
  async digestOf(imageId: string, name: string): Promise<string | undefined> {
    return (await this.load()).get(imageId)?.digests[name] || undefined;
  }

  /** Removes unused images if the disk is short. Returns their ids. */
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

  /** Returns the images that no container uses, and that were last used more than an hour ago, oldest use first. */
  private async unused(): Promise<ImageInfo[]> {
    const known = await this.load();
    const containers = await this.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true }),
    );
    const inUse = new Set(containers.map(({ ImageID }) => ImageID));
    const images = await this.engine.call('list images', DEADLINE_MS.inspect, (docker) => docker.listImages());
    // Forget images that the host owner has removed.
    const present = new Set(images.map(({ Id }) => Id));
    for (const [id, { usedAt }] of known)
      if (!present.has(id) && usedAt <= this.clock.now() - GRACE_MS) known.delete(id);
    // A crash left these images unrecorded: their time counts from now on.
    for (const image of images.filter(({ Id }) => !known.has(Id)))
      if (namesOf(image).some(isFetchedName)) known.set(image.Id, { usedAt: this.clock.now(), digests: {} });
    const lastUse = ({ Id }: ImageInfo) => known.get(Id)?.usedAt ?? Infinity;
    return images
      .filter((image) => !inUse.has(image.Id) && lastUse(image) <= this.clock.now() - GRACE_MS)
      .sort((one, other) => lastUse(one) - lastUse(other));
  }

  /**
   * Removes our names of an image. It never uses force: an image that is used after all stays, and so does an image
   * that the host owner has named.
   */
  private async remove(image: ImageInfo): Promise<boolean> {
    const { Id } = image;
    const { isOld = false, plainNames = [] } = (await this.load()).get(Id) ?? {};
    const all = namesOf(image);
    const isOurs = (name: string) => isOld || isFetchedName(name) || plainNames.includes(name);
    const names = all.filter(isOurs);
    try {
      for (const name of all.length > 0 ? names : [Id]) await this.removeName(name);
    } catch (error) {
      this.logger.warn({ image: Id }, `an image could not be removed: ${messageOf(error)}`);
      return false;
    }
    this.logger.info({ image: Id, names }, 'removed an image, because the disk is short');
    return true;
  }

  private async removeName(name: string): Promise<void> {
    await this.engine
      .call('remove an image', DEADLINE_MS.remove, (docker) => imageOf(docker, name).remove())
      .catch((error: unknown) => {
        // 404: the digests are gone with the last name.
        if (statusOf(error) !== 404) throw error;
      });
  }

  private async load(): Promise<Map<string, Entry>> {
    this.known ??= new Map(
      await readFile(this.host.file, 'utf8')
        .then((text) => Object.entries(JSON.parse(text) as Record<string, Entry | number>))
        .then((entries) => entries.map(([id, entry]) => [id, entryOf(entry)] as const))
        .catch(() => []),
    );
    return this.known;
  }

  private save(known: Map<string, Entry>): Promise<void> {
    this.writing = this.writing
      .then(async () => {
        const { file } = this.host;
        await writeFile(`${file}.new`, JSON.stringify(Object.fromEntries(known)), { mode: 0o600 });
        await rename(`${file}.new`, file);
      })
      // A deploy must not fail for this: an image that is not recorded is not removed.
      .catch((error: unknown) => this.logger.warn(`the use of an image could not be recorded: ${messageOf(error)}`));
    return this.writing;
  }
}

function forgetNames(entry: Entry, names: readonly (string | undefined)[]): void {
  entry.digests = Object.fromEntries(Object.entries(entry.digests).filter(([name]) => !names.includes(name)));
  if (entry.plainNames) entry.plainNames = entry.plainNames.filter((name) => !names.includes(name));
}

/** Reads an entry. Before there were relays, the file had only the time of the last use. */
function entryOf(entry: Entry | number): Entry {
  return typeof entry === 'number' ? { usedAt: entry, digests: {}, isOld: true } : entry;
}

/** Returns the tags and digests of an image. */
function namesOf({ RepoTags, RepoDigests }: ImageInfo): string[] {
  const named = [...((RepoTags as string[] | null) ?? []), ...((RepoDigests as string[] | null) ?? [])];
  return named.filter((name) => !name.includes('<none>'));
}
