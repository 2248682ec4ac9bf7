import type Docker from 'dockerode';
import type { PulledImage } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../../../domain/failure.js';
import type { LocalImages } from '../../../domain/local-images.js';
import { requirementsOf } from '../../../domain/nvidia-requirement.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from '../engine.js';
import type { ImageCache } from './image-cache.js';
import { withTag, type ImageOrder, type ImagePuller } from './image-puller.js';
import { OWN_IMAGES, isRelayed, pulledName } from './pulled-images.js';

/** The configuration of an image. */
export interface ImageDefaults {
  entrypoint: string[];
  command: string[];
  /** `name`, `uid`, `name:group` or `uid:gid`; empty: root. */
  user: string;
  /** Signal that ends its command; empty: SIGTERM. */
  stopSignal: string;
  /** Folders that Docker keeps outside of the container (VOLUME). */
  volumes: string[];
  setsHome: boolean;
  /** Working directory of its command; empty: the root. */
  workingDir: string;
}

/** Docker leaves this prefix out of names. */
const DEFAULT_REGISTRY = /^(docker\.io\/)?(library\/)?/;

/**
 * Returns whether renters get the host's own copy of an image, without a question to its registry: the owner has named it in the
 * list, or rents out any image that was made here.
 */
export async function isTakenFromHost(engine: Engine, local: LocalImages, name: string): Promise<boolean> {
  if (name.startsWith(OWN_IMAGES) || local === 'any') return isMadeHere(engine, name);
  return local.includes(name) && (await inspectTagged(engine, name)) !== undefined;
}

/**
 * Returns whether the host owner made an image. An image with a registry's digest was not made here; digests that contain a
 * relay's address, as during a pull, do not count.
 */
export async function isMadeHere(engine: Engine, name: string): Promise<boolean> {
  const image = await inspectTagged(engine, name);
  if (!image) return false;
  return ((image.RepoDigests as string[] | null) ?? []).every((digest) => isRelayed(digest));
}

/** Reads an image that has exactly this name: an ID, or the beginning of one, could name any image of the host. */
async function inspectTagged(engine: Engine, name: string): Promise<Docker.ImageInspectInfo | undefined> {
  // Another renter's image, whose pull is under way or was interrupted.
  if (isRelayed(withTag(name))) return undefined;
  const image = await inspectImage(engine, name);
  const tags = (image?.RepoTags as string[] | null | undefined) ?? [];
  return tags.includes(withTag(name).replace(DEFAULT_REGISTRY, '')) ? image : undefined;
}

export interface LocalImage {
  id: string;
  /** Reference, with the digest if a registry reported one. */
  reference: string;
  /** Its configuration. */
  defaults: ImageDefaults;
  /** What it requires of NVIDIA's driver; undefined: it is too much to be told. */
  requirements: string[] | undefined;
}

/** Provides the images of renters' workloads. */
export class Images {
  constructor(
    private readonly engine: Engine,
    private readonly puller: ImagePuller,
    private readonly cache: ImageCache,
    private readonly local: LocalImages,
  ) {}

  /**
   * Pulls the image through the cache, which makes room first and records the image. An image of the host that its
   * owner rents out is used as it is. Any other image is requested from its registry even if the host has it, because
   * another renter's password can have brought it here. Throws Failure IMAGE_UNAVAILABLE with the reason.
   */
  async fetch(order: ImageOrder): Promise<LocalImage> {
    const { spec, onProgress } = order;
    if (spec.image.startsWith(OWN_IMAGES))
      throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} is this host's own, and is not rented out`);
    await this.cache.collect();
    if (await isTakenFromHost(this.engine, this.local, spec.image))
      return requireNamed(this.engine, spec.image, spec.image);
    // The cache must not remove the host's copy meanwhile.
    const before = await readImage(this.engine, pulledName(spec.image));
    if (before) await this.cache.used(before.id);
    onProgress('pulling', `pulling ${spec.image}`);
    await this.cache.fetched(await this.puller.pull(order));
    const image = await this.find(spec.image);
    onProgress('pulled', `pulled ${spec.image}`, saidBy(image));
    return image;
  }

  /**
   * Returns an image that was fetched for renters under this name, or made here, and records its use: it is about to be
   * run. Throws Failure IMAGE_UNAVAILABLE.
   */
  async require(name: string): Promise<LocalImage> {
    const image = await this.find(name);
    await this.cache.used(image.id);
    return image;
  }

  private async find(name: string): Promise<LocalImage> {
    if (await isTakenFromHost(this.engine, this.local, name)) return requireNamed(this.engine, name, name);
    const local = pulledName(name);
    const image = await requireNamed(this.engine, local, name);
    const digest = name.includes('@') ? undefined : await this.cache.digestOf(image.id, local);
    return digest === undefined ? image : { ...image, reference: `${name}@${digest}` };
  }
}

/** Returns the image that has exactly this name in Docker; undefined if the host does not have it. */
export async function readImage(engine: Engine, name: string): Promise<LocalImage | undefined> {
  const image = await inspectImage(engine, name);
  if (!image) return undefined;
  const config: ImageConfig = image.Config;
  const requirements = requirementsOf(config.Env ?? []);
  return { id: image.Id, reference: name, defaults: imageDefaults(config), requirements };
}

/** Returns the image that Docker knows as `local` and renters as `name`. Throws Failure IMAGE_UNAVAILABLE. */
export async function requireNamed(engine: Engine, local: string, name: string): Promise<LocalImage> {
  const image = await readImage(engine, local);
  if (!image) throw new Failure('IMAGE_UNAVAILABLE', `the image ${name} is no longer on this host`);
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

/** Returns what an image from a registry says of itself; undefined if its digest is not known, or if it says too much. */
function saidBy({ reference, requirements }: LocalImage): PulledImage | undefined {
  const [, digest] = reference.split('@');
  return digest === undefined || requirements === undefined ? undefined : { digest, requirements };
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

/** Reads the configuration of an image. Docker omits, or reports as null, what the image does not set. */
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
