import { lookup } from 'node:dns/promises';
import type { Clock } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import { isForbidden } from '../../../shared/forbidden-networks.js';
import type { Logger } from '../../../shared/logger.js';
import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../../domain/failure.js';
import { pullFailure } from '../../domain/pull-failure.js';
import type { PullLimits } from '../../domain/pull-limits.js';
import type { OnProgress } from '../workload.js';
import { DEADLINE_MS, imageOf, reasonOf, requireImageName, type Engine } from './engine.js';
import { PullWatch, type PullEvent } from './pull-watch.js';

export interface ImageOrder {
  spec: WorkloadSpec;
  onProgress: OnProgress;
  /** Abandons it. */
  signal: AbortSignal;
}

export interface PullPolicy {
  limits: PullLimits;
  /** Networks in which registries may be though renters may not reach them; null: in any. */
  allowed: readonly string[] | null;
  /** Of Docker's file system, 0 to 1. */
  freeShare(): Promise<number>;
}

const DOCKER_HUB = 'index.docker.io';
const LOOK_MS = 5_000;
/** With less of Docker's file system free, no pull goes on: what is unpacked may be a thousand times what was sent. */
const LEAST_FREE_SHARE = 0.03;
/** Of what Docker says about a failed pull, in the agent's log. */
const MAX_SAID = 500;

/** Has Docker pull images, within bounds. */
export class ImagePuller {
  constructor(
    private readonly engine: Engine,
    private readonly clock: Clock,
    private readonly policy: PullPolicy,
    private readonly logger: Logger,
  ) {}

  /** Rejects with Failure IMAGE_UNAVAILABLE in our own words; and with what `signal` is aborted with. */
  async pull(order: ImageOrder): Promise<void> {
    const { image } = order.spec;
    const name = withTag(image);
    requireImageName(name);
    await this.requireReachable(image);
    try {
      await this.follow(name, order);
      await this.requireSize(name);
    } catch (error) {
      if (order.signal.aborted || (error instanceof Failure && error.code === 'DOCKER_UNREACHABLE')) throw error;
      const said = reasonOf(error);
      this.logger.warn({ image, said: said.slice(0, MAX_SAID) }, 'a pull has failed');
      const why = error instanceof PullStopped ? error.message : pullFailure(said);
      throw new Failure('IMAGE_UNAVAILABLE', `the image ${image} cannot be pulled: ${why}`, { cause: error });
    }
  }

  /** A registry is where renters may not reach: then its answers are not for them either. */
  private async requireReachable(image: string): Promise<void> {
    const { allowed } = this.policy;
    const host = hostOf(registryOf(image));
    if (allowed === null || host === DOCKER_HUB) return;
    const found = await lookup(host, { all: true }).catch(() => []);
    if (!found.some(({ address }) => isForbidden(address, allowed))) return;
    const what = `the registry ${host} is at an address that instances may not reach`;
    throw new Failure('IMAGE_UNAVAILABLE', `the image ${image} cannot be pulled: ${what}; take a public registry`);
  }

  private async follow(name: string, { spec, onProgress, signal }: ImageOrder): Promise<void> {
    const options = spec.registry ? { authconfig: { ...spec.registry, serveraddress: serverOf(name) } } : {};
    const { engine, clock } = this;
    const stream = await engine.call('begin the pull', DEADLINE_MS.pullSilence, (docker) => docker.pull(name, options));
    const watch = new PullWatch(this.policy.limits, clock.monotonic());
    let [heardAt, told] = [clock.monotonic(), 0];
    await new Promise<void>((resolve, reject) => {
      let timer = clock.schedule(LOOK_MS, () => void look());
      const end = (error: Error | null) => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        if (error) (stream as unknown as { destroy(): void }).destroy();
        if (error) reject(error);
        else resolve();
      };
      const onAbort = () => end(signal.reason as Error);
      const look = async () => {
        const complaint = await this.complaint(watch, heardAt);
        if (complaint !== undefined) return end(new PullStopped(complaint));
        timer = clock.schedule(LOOK_MS, () => void look());
      };
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) return onAbort();
      engine.docker.modem.followProgress(
        stream,
        (error) => end(error),
        (event: PullEvent) => {
          heardAt = clock.monotonic();
          watch.add(event);
          const tenth = Math.floor(watch.percent / 10);
          if (tenth > told) onProgress('pulling', `${tenth * 10} % of the image pulled`);
          told = Math.max(told, tenth);
        },
      );
    });
  }

  private async complaint(watch: PullWatch, heardAt: number): Promise<string | undefined> {
    const now = this.clock.monotonic();
    if (now - heardAt >= DEADLINE_MS.pullSilence) return 'the registry sent nothing for a minute';
    const free = await this.policy.freeShare().catch(() => 1);
    if (free < LEAST_FREE_SHARE) return 'the disk of this machine is full; try another machine';
    return watch.complaint(now);
  }

  private async requireSize(name: string): Promise<void> {
    const { mostBytes } = this.policy.limits;
    const image = this.engine.docker.getImage(name);
    const { Size } = await this.engine.call('inspect the image', DEADLINE_MS.inspect, () => image.inspect());
    if (Size <= mostBytes) return;
    await this.engine
      .call('remove an image', DEADLINE_MS.remove, (docker) => imageOf(docker, name).remove())
      .catch((error: unknown) => this.logger.warn(`an image that is too large stays: ${messageOf(error)}`));
    throw new PullStopped(`it takes ${Math.ceil(Size / 1e9)} GB, and this machine takes ${mostBytes / 1e9} GB at most`);
  }
}

/** A pull that we have ended. */
class PullStopped extends Error {}

export function withTag(image: string): string {
  return /[:@][^/]+$/.test(image) ? image : `${image}:latest`;
}

function registryOf(image: string): string {
  const [first = ''] = image.split('/');
  return image.includes('/') && /[.:]|^localhost$/.test(first) ? first : DOCKER_HUB;
}

function serverOf(image: string): string {
  const registry = registryOf(image);
  return registry === DOCKER_HUB ? `https://${DOCKER_HUB}/v1/` : registry;
}

function hostOf(registry: string): string {
  return registry.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}
