import type Docker from 'dockerode';
import { Failure } from '../../domain/failure.js';
import type { ImageDefaults } from './container-options.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from './engine.js';
import type { ImageCache } from './image-cache.js';
import { withTag, type ImageOrder, type ImagePuller } from './image-puller.js';

/** What the agent makes for itself is named so, which no registry serves: no renter can put anything in its place. */
export const OWN_IMAGES = 'localhost/gpurent/';
/** Docker leaves it out. */
const DEFAULT_REGISTRY = /^(docker\.io\/)?(library\/)?/;

/**
 * Pulls the image; one that was made on this host, and came from no registry, is used as it is. A registry is asked also for
 * what the host has: another renter's password may have brought it here. Throws Failure IMAGE_UNAVAILABLE with the reason.
 */
async function fetchImage(engine: Engine, puller: ImagePuller, order: ImageOrder): Promise<void> {
  const { spec, onProgress } = order;
  if (spec.image.startsWith(OWN_IMAGES))
    throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} is this host's own, and is not rented out`);
  if (await isMadeHere(engine, spec.image)) return;
  onProgress('pulling', `pulling ${spec.image}`);
  await puller.pull(order);
  onProgress('pulled', `pulled ${spec.image}`);
}

/** Whether an image is this host's owner's own. By its name alone: an identity, or the beginning of one, would lead to whatever is on the host. */
export async function isMadeHere(engine: Engine, name: string): Promise<boolean> {
  const image = await inspectImage(engine, name);
  if (!image || !noneOf(image.RepoDigests)) return false;
  return ((image.RepoTags as string[] | null) ?? []).includes(withTag(name).replace(DEFAULT_REGISTRY, ''));
}

/** Fetches it through the cache, which makes room first and notes whose it is. */
export async function fetchCached(
  engine: Engine,
  puller: ImagePuller,
  cache: ImageCache,
  order: ImageOrder,
): Promise<LocalImage> {
  const before = await readImage(engine, order.spec.image);
  await cache.collect();
  await fetchImage(engine, puller, order);
  const image = await requireImage(engine, order.spec.image);
  await cache.used(image.id, image.id !== before?.id);
  return image;
}

export interface LocalImage {
  id: string;
  /** With its digest where a registry has given it one. */
  reference: string;
  /** What it says of itself. */
  defaults: ImageDefaults;
}

/** Undefined when the host does not have it. */
export async function readImage(engine: Engine, name: string): Promise<LocalImage | undefined> {
  const image = await inspectImage(engine, name);
  if (!image) return undefined;
  const digest = (image.RepoDigests as string[] | null)?.find((entry) => isSameRepository(entry, name))?.split('@')[1];
  const reference = digest === undefined || name.includes('@') ? name : `${name}@${digest}`;
  return { id: image.Id, reference, defaults: imageDefaults(image.Config) };
}

/** Throws Failure IMAGE_UNAVAILABLE. */
export async function requireImage(engine: Engine, name: string): Promise<LocalImage> {
  const image = await readImage(engine, name);
  if (!image) throw new Failure('IMAGE_UNAVAILABLE', `the image ${name} has vanished from this host`);
  return image;
}

/** Docker shortens the names of its own registry. */
function isSameRepository(digested: string, name: string): boolean {
  const repository = name.replace(/@.*$/, '').replace(/:[^/:]+$/, '');
  return digested.split('@')[0] === repository.replace(DEFAULT_REGISTRY, '') || digested.startsWith(`${repository}@`);
}

export async function inspectImage(engine: Engine, name: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await engine.call('inspect the image', DEADLINE_MS.inspect, (docker) => imageOf(docker, name).inspect());
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

/** Docker says null for an empty list. */
function noneOf(list: string[] | null): boolean {
  return list === null || list.length === 0;
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
