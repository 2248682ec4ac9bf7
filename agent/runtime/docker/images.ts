import type Docker from 'dockerode';
import { Failure } from '../../domain/failure.js';
import { isRentedOut, type LocalImages } from '../../domain/local-images.js';
import type { ImageDefaults } from './container-options.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from './engine.js';
import type { ImageCache } from './image-cache.js';
import { withTag, type ImageOrder, type ImagePuller } from './image-puller.js';
import { OWN_IMAGES, isRelayed, pulledName } from './pulled-images.js';

/** Docker leaves it out. */
const DEFAULT_REGISTRY = /^(docker\.io\/)?(library\/)?/;

/**
 * Whether an image is this host's owner's own. By its name alone: an identity, or the beginning of one, would lead to whatever is
 * on the host. Docker knows what came from a registry by a digest; what it is called while it is pulled says nothing of it.
 */
export async function isMadeHere(engine: Engine, name: string): Promise<boolean> {
  // Another renter's image, whose pull is under way or was cut off.
  if (isRelayed(withTag(name))) return false;
  const image = await inspectImage(engine, name);
  if (!image) return false;
  const digests = ((image.RepoDigests as string[] | null) ?? []).filter((digest) => !isRelayed(digest));
  if (digests.length > 0) return false;
  return ((image.RepoTags as string[] | null) ?? []).includes(withTag(name).replace(DEFAULT_REGISTRY, ''));
}

export interface LocalImage {
  id: string;
  /** With its digest where a registry has given it one. */
  reference: string;
  /** What it says of itself. */
  defaults: ImageDefaults;
}

/** The images that renters' workloads are made of. */
export class Images {
  constructor(
    private readonly engine: Engine,
    private readonly puller: ImagePuller,
    private readonly cache: ImageCache,
    private readonly local: LocalImages,
  ) {}

  /**
   * Pulls the image, through the cache, which makes room first and notes whose it is; one that was made on this host is used as it
   * is, where its owner rents it out. A registry is asked also for what the host has: another renter's password may have brought it
   * here. Throws Failure IMAGE_UNAVAILABLE with the reason.
   */
  async fetch(order: ImageOrder): Promise<LocalImage> {
    const { spec, onProgress } = order;
    if (spec.image.startsWith(OWN_IMAGES))
      throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} is this host's own, and is not rented out`);
    await this.cache.collect();
    if (await this.isLocal(spec.image)) return requireNamed(this.engine, spec.image, spec.image);
    // What the host has of it is not to go meanwhile.
    const before = await readImage(this.engine, pulledName(spec.image));
    if (before) await this.cache.used(before.id);
    onProgress('pulling', `pulling ${spec.image}`);
    await this.cache.fetched(await this.puller.pull(order));
    onProgress('pulled', `pulled ${spec.image}`);
    return this.find(spec.image);
  }

  /** What was fetched for renters by this name, or made here, and is about to be run. Throws Failure IMAGE_UNAVAILABLE. */
  async require(name: string): Promise<LocalImage> {
    const image = await this.find(name);
    await this.cache.used(image.id);
    return image;
  }

  private async find(name: string): Promise<LocalImage> {
    if (await this.isLocal(name)) return requireNamed(this.engine, name, name);
    const local = pulledName(name);
    const image = await requireNamed(this.engine, local, name);
    const digest = name.includes('@') ? undefined : await this.cache.digestOf(image.id, local);
    return digest === undefined ? image : { ...image, reference: `${name}@${digest}` };
  }

  private async isLocal(name: string): Promise<boolean> {
    const isOffered = name.startsWith(OWN_IMAGES) || isRentedOut(this.local, name);
    return isOffered && isMadeHere(this.engine, name);
  }
}

/** What Docker knows by exactly this name. Undefined when the host does not have it. */
export async function readImage(engine: Engine, name: string): Promise<LocalImage | undefined> {
  const image = await inspectImage(engine, name);
  return image && { id: image.Id, reference: name, defaults: imageDefaults(image.Config) };
}

/** What Docker knows by the name `local`, and renters by `name`. Throws Failure IMAGE_UNAVAILABLE. */
export async function requireNamed(engine: Engine, local: string, name: string): Promise<LocalImage> {
  const image = await readImage(engine, local);
  if (!image) throw new Failure('IMAGE_UNAVAILABLE', `the image ${name} has vanished from this host`);
  return { ...image, reference: name };
}

export async function inspectImage(engine: Engine, name: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await engine.call('inspect the image', DEADLINE_MS.inspect, (docker) => imageOf(docker, name).inspect());
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

type Words = string | string[] | null | undefined;

interface ImageConfig {
  Entrypoint?: Words;
  Cmd?: Words;
  User?: string | null | undefined;
  StopSignal?: string | null | undefined;
  Env?: string[] | null | undefined;
  Volumes?: Record<string, unknown> | null | undefined;
  WorkingDir?: string | null | undefined;
}

/** Docker leaves out, or answers null for, what an image does not say. */
export function imageDefaults(config: ImageConfig): ImageDefaults {
  const list = (value: Words) => (value ? [value].flat() : []);
  return {
    entrypoint: list(config.Entrypoint),
    command: list(config.Cmd),
    user: config.User ?? '',
    stopSignal: config.StopSignal ?? '',
    volumes: Object.keys(config.Volumes ?? {}),
    workingDir: config.WorkingDir ?? '',
    setsHome: config.Env?.some((entry) => entry.startsWith('HOME=')) ?? false,
  };
}
