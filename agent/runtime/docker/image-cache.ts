import type { ImageInfo } from 'dockerode';
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Clock } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import type { Logger } from '../../../shared/logger.js';
import { HOUR_MS } from '../../../shared/time.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from './engine.js';
import { isFetchedName } from './pulled-images.js';

/** With less of the file system free, images that nobody uses go, those that were used longest ago first. */
const PRESSURE_SHARE = 0.12;
/** Until so much is free. */
const RELIEF_SHARE = 0.2;
/** What was fetched for a deploy is not taken away before its container is made. */
const GRACE_MS = HOUR_MS;
/** Names of one image: a registry may give it any number. */
const MOST_NAMES = 32;

export interface CacheHost {
  /** Where it is noted which images were fetched for renters, and when they were last used. */
  file: string;
  /** Of Docker's file system, 0 to 1. */
  freeShare(): Promise<number>;
}

/** What is noted of an image. */
interface Entry {
  usedAt: number;
  /** By our names of it, the newest last: what their registry calls it. */
  digests: Record<string, string>;
  /** Names that Docker's own pull has given it, without a relay. */
  plainNames?: string[];
  /** It was fetched before there were relays: every name of it was given for renters. */
  isOld?: boolean;
}

/** An image that was fetched for a renter. */
export interface FetchedImage {
  id: string;
  /** Ours of it. */
  name?: string;
  digest?: string | undefined;
  plainName?: string;
}

/** Images that were fetched for renters, and nobody else's: kept for the next one until the disk is short. */
export class ImageCache {
  private known: Map<string, Entry> | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly clock: Clock,
    private readonly host: CacheHost,
    private readonly logger: Logger,
  ) {}

  /** Notes it, its use, and its names; of more than it may have, the oldest go. */
  async fetched({ id, name, digest, plainName }: FetchedImage): Promise<void> {
    const known = await this.load();
    const entry = known.get(id) ?? { usedAt: 0, digests: {} };
    known.set(id, entry);
    entry.usedAt = this.clock.now();
    // What another image was called so far, this one is called now.
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

  /** Notes that an image is about to be run, if it is one of these. */
  async used(imageId: string): Promise<void> {
    const known = await this.load();
    const entry = known.get(imageId);
    if (!entry) return;
    entry.usedAt = this.clock.now();
    await this.save(known);
  }

  /** What the registry called an image when it was fetched by one of our names. */
  async digestOf(imageId: string, name: string): Promise<string | undefined> {
    return (await this.load()).get(imageId)?.digests[name] || undefined;
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
    // What its owner has removed meanwhile.
    const present = new Set(images.map(({ Id }) => Id));
    for (const [id, { usedAt }] of known)
      if (!present.has(id) && usedAt <= this.clock.now() - GRACE_MS) known.delete(id);
    // What a crash has left unnoted counts from now on.
    for (const image of images.filter(({ Id }) => !known.has(Id)))
      if (namesOf(image).some(isFetchedName)) known.set(image.Id, { usedAt: this.clock.now(), digests: {} });
    const lastUse = ({ Id }: ImageInfo) => known.get(Id)?.usedAt ?? Infinity;
    return images
      .filter((image) => !inUse.has(image.Id) && lastUse(image) <= this.clock.now() - GRACE_MS)
      .sort((one, other) => lastUse(one) - lastUse(other));
  }

  /** Never by force: what is used after all stays, and so does what this host's owner has given a name. */
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
    this.logger.info({ image: Id, names }, 'an image was removed, for the disk is short');
    return true;
  }

  private async removeName(name: string): Promise<void> {
    await this.engine
      .call('remove an image', DEADLINE_MS.remove, (docker) => imageOf(docker, name).remove())
      .catch((error: unknown) => {
        // Its digests go with its last name.
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
      // Nobody's deploy fails for it: what is not noted is not removed.
      .catch((error: unknown) => this.logger.warn(`the use of an image could not be noted: ${messageOf(error)}`));
    return this.writing;
  }
}

function forgetNames(entry: Entry, names: readonly (string | undefined)[]): void {
  entry.digests = Object.fromEntries(Object.entries(entry.digests).filter(([name]) => !names.includes(name)));
  if (entry.plainNames) entry.plainNames = entry.plainNames.filter((name) => !names.includes(name));
}

/** Before there were relays, the file had the time of the last use alone. */
function entryOf(entry: Entry | number): Entry {
  return typeof entry === 'number' ? { usedAt: entry, digests: {}, isOld: true } : entry;
}

/** Tags and digests. */
function namesOf({ RepoTags, RepoDigests }: ImageInfo): string[] {
  const named = [...((RepoTags as string[] | null) ?? []), ...((RepoDigests as string[] | null) ?? [])];
  return named.filter((name) => !name.includes('<none>'));
}
