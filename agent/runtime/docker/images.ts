import type Docker from 'dockerode';
import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Clock, Timer } from '../../../shared/clock.js';
import { Failure } from '../../domain/failure.js';
import type { OnProgress } from '../workload.js';
import type { ImageDefaults } from './container-options.js';
import { DEADLINE_MS, imageOf, reasonOf, requireImageName, statusOf, type Engine } from './engine.js';
import type { ImageCache } from './image-cache.js';

/** What the agent makes for itself is named so, which no registry serves: no renter can put anything in its place. */
export const OWN_IMAGES = 'localhost/gpurent/';
/** Docker leaves it out. */
const DEFAULT_REGISTRY = /^(docker\.io\/)?(library\/)?/;

interface PullEvent {
  status?: string;
  id?: string;
  error?: string;
  progressDetail?: { current?: number; total?: number };
}

export interface ImageOrder {
  spec: WorkloadSpec;
  onProgress: OnProgress;
  /** Abandons it. */
  signal: AbortSignal;
}

/**
 * Pulls the image; one that was made on this host, and came from no registry, is used as it is. A registry is asked also for
 * what the host has: another renter's password may have brought it here. Throws Failure IMAGE_UNAVAILABLE with the reason.
 */
async function fetchImage(engine: Engine, clock: Clock, order: ImageOrder): Promise<void> {
  const { spec, onProgress, signal } = order;
  if (spec.image.startsWith(OWN_IMAGES))
    throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} is this host's own, and is not rented out`);
  if (await isMadeHere(engine, spec.image)) return;
  onProgress('pulling', `pulling ${spec.image}`);
  try {
    await pull(engine, clock, order);
  } catch (error) {
    if (signal.aborted || (error instanceof Failure && error.code === 'DOCKER_UNREACHABLE')) throw error;
    throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} cannot be pulled: ${reasonOf(error)}`, {
      cause: error,
    });
  }
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
  clock: Clock,
  cache: ImageCache,
  order: ImageOrder,
): Promise<LocalImage> {
  const before = await readImage(engine, order.spec.image);
  await cache.collect();
  await fetchImage(engine, clock, order);
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

async function pull(engine: Engine, clock: Clock, { spec, onProgress, signal }: ImageOrder): Promise<void> {
  const name = withTag(spec.image);
  requireImageName(name);
  const options = spec.registry ? { authconfig: { ...spec.registry, serveraddress: registryOf(name) } } : {};
  const stream = await engine.call('begin the pull', DEADLINE_MS.pullSilence, (docker) => docker.pull(name, options));
  const progress = new PullProgress(onProgress);
  await new Promise<void>((resolve, reject) => {
    let silence: Timer;
    const end = (error: Error | null) => {
      silence.cancel();
      signal.removeEventListener('abort', onAbort);
      if (error) (stream as unknown as { destroy(): void }).destroy();
      if (error) reject(error);
      else resolve();
    };
    const onAbort = () => end(signal.reason as Error);
    const watch = () =>
      clock.schedule(DEADLINE_MS.pullSilence, () => end(new Error('the registry sent nothing for a minute')));
    silence = watch();
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) return onAbort();
    engine.docker.modem.followProgress(
      stream,
      (error) => end(error),
      (event: PullEvent) => {
        silence.cancel();
        silence = watch();
        progress.add(event);
      },
    );
  });
}

function withTag(image: string): string {
  return /[:@][^/]+$/.test(image) ? image : `${image}:latest`;
}

function registryOf(image: string): string {
  const [first = ''] = image.split('/');
  return image.includes('/') && /[.:]|^localhost$/.test(first) ? first : 'https://index.docker.io/v1/';
}

/** Tells of every tenth part of all layers together. */
class PullProgress {
  private readonly layers = new Map<string, { current: number; total: number }>();
  private told = 0;

  constructor(private readonly onProgress: OnProgress) {}

  add({ status, id, progressDetail }: PullEvent): void {
    const total = progressDetail?.total ?? 0;
    if (status !== 'Downloading' || !id || total === 0) return;
    this.layers.set(id, { current: progressDetail?.current ?? 0, total });
    const layers = [...this.layers.values()];
    const sum = (pick: (layer: { current: number; total: number }) => number) =>
      layers.reduce((all, layer) => all + pick(layer), 0);
    const tenth = Math.floor((10 * sum((layer) => layer.current)) / sum((layer) => layer.total));
    if (tenth <= this.told) return;
    this.told = tenth;
    this.onProgress('pulling', `${tenth * 10} % of the image pulled`);
  }
}
