import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { Clock } from '../../../../shared/clock.js';
import { CodedError, messageOf } from '../../../../shared/coded-error.js';
import { isForbidden } from '../../../../shared/network/forbidden-networks.js';
import {
  DOCKER_HUB,
  canonicalName,
  parseImageReference,
  type ImageReference,
} from '../../../../shared/image-reference.js';
import type { Logger } from '../../../../shared/logger.js';
import { PacedLog } from '../../../../shared/paced-log.js';
import type { WorkloadSpec } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../../../domain/failure.js';
import { PullRefused, pullFailure } from '../../../domain/pull-failure.js';
import type { PullLimits } from '../../../domain/pull-limits.js';
import { pullRoute, pullsThroughProxy, type DockerRegistries } from '../../../domain/registries.js';
import type { RunningRelay, StartRelay } from '../../../pulls/client.js';
import { RELAY_REPOSITORY, RELAY_USER, type RelayOrder } from '../../../pulls/order.js';
import type { OnProgress } from '../../workload.js';
import { DEADLINE_MS, imageOf, reasonOf, requireImageName, type Engine } from '../engine.js';
import { PullSlots } from './pull-slots.js';
import { PullWatch, type PullEvent } from './pull-watch.js';
import { pulledName } from './pulled-images.js';
import { registryAuthorities } from './registry-authorities.js';

export interface ImageOrder {
  spec: WorkloadSpec;
  onProgress: OnProgress;
  /** Cancels the pull. */
  signal: AbortSignal;
}

export interface PullPolicy {
  limits: PullLimits;
  /** Forbidden networks in which registries are allowed all the same; null: registries can be in any network. */
  allowed: readonly string[] | null;
  /** Returns the free share of Docker's file system, 0 to 1. */
  freeShare(): Promise<number>;
}

export interface PulledImage {
  id: string;
  /** Docker's name for it from now on. */
  name: string;
  /** Undefined if Docker does not report it. */
  digest: string | undefined;
  /** The name from a pull without a relay, which the image keeps besides `name`. */
  plainName?: string;
}

/** The image for Docker to pull, with the credentials for its registry. */
interface Source {
  name: string;
  authconfig?: { username: string; password: string; serveraddress: string };
  relay?: RunningRelay;
}

const UNAVAILABLE = 'IMAGE_UNAVAILABLE';
const TOO_SLOW = 'IMAGE_TOO_SLOW';
/** The server address under which Docker expects credentials of Docker Hub. */
const HUB_SERVER = 'https://index.docker.io/v1/';
const LOOK_MS = 5_000;
/** A pull that fails sooner has not kept GPUs waiting for long. */
const HELD_MS = 30_000;
/**
 * With a smaller share of Docker's file system free, no pull goes on: a layer can unpack to a thousand times its
 * download size.
 */
const LEAST_FREE_SHARE = 0.03;
/** Longest part of Docker's error in the agent's log, in characters. */
const MAX_SAID = 500;
/** A relay takes about 60 MB. */
const MOST_AT_ONCE = 16;
const WAITS = `it waits for its turn: this host is pulling ${MOST_AT_ONCE} images already`;
/**
 * Docker lets two pulls share the download of a common layer, which fails for both when the relay of the first pull
 * ends.
 */
const MOST_TRIES = 3;

/** Makes Docker pull images within limits, through a relay that requests them from their registries. */
export class ImagePuller {
  private readonly slots = new PullSlots(MOST_AT_ONCE);

  constructor(
    private readonly engine: Engine,
    private readonly clock: Clock,
    private readonly policy: PullPolicy,
    private readonly logger: Logger,
    private readonly startRelay: StartRelay,
    private readonly paced = new PacedLog(clock, logger),
  ) {}

  /**
   * Pulls the image. Rejects with Failure IMAGE_UNAVAILABLE or IMAGE_TOO_SLOW in the agent's own words, with Failure
   * DOCKER_UNREACHABLE, or with the abort reason of `signal`.
   */
  async pull(order: ImageOrder): Promise<PulledImage> {
    const { image } = order.spec;
    requireImageName(withTag(image));
    const parsed = parseImageReference(image);
    if (!parsed) throw new Failure('IMAGE_UNAVAILABLE', `"${image}" is an image ID; use the name of an image`);
    const release = await this.slots.take(order.signal, () => order.onProgress('waiting', WAITS));
    const begunAt = this.clock.monotonic();
    try {
      const registries = await this.engine.info();
      if (pullsThroughProxy(registries)) return await this.pullDirectly(order, parsed);
      return await this.pullRelayed(order, parsed, registries);
    } catch (error) {
      if (order.signal.aborted || (error instanceof Failure && error.code === 'DOCKER_UNREACHABLE')) throw error;
      const said = reasonOf(error);
      const about = `${parsed.registry} ${said}`;
      this.paced.write('warn', 'image pull failed', { image, said: said.slice(0, MAX_SAID) }, about);
      const why = this.whyOf(error, said, begunAt);
      throw new Failure(why.code, `the image ${image} cannot be pulled: ${why.message}`, { cause: error });
    } finally {
      release();
    }
  }

  /**
   * Returns the reason of a failed pull. A failure after HELD_MS counts as too slow, whatever its cause, because the
   * registry has kept GPUs waiting.
   */
  private whyOf(error: unknown, said: string, begunAt: number): PullStopped {
    if (error instanceof PullStopped) return error;
    const code = this.clock.monotonic() - begunAt >= HELD_MS ? TOO_SLOW : UNAVAILABLE;
    return new PullStopped(code, error instanceof PullRefused ? error.message : pullFailure(said));
  }

  private async pullRelayed(
    order: ImageOrder,
    parsed: ImageReference,
    registries: DockerRegistries,
    tried = 1,
  ): Promise<PulledImage> {
    const relayOrder = await this.relayOrder(order.spec, parsed, registries);
    const relay = await this.startRelay(relayOrder).catch((cause: unknown) => {
      this.paced.write('error', `the pull relay could not be started: ${messageOf(cause)}`);
      throw new PullStopped(UNAVAILABLE, 'what asks the registry does not start on this machine; try another machine');
    });
    try {
      const { reference, secret } = relayOrder;
      const server = `127.0.0.1:${relay.port}`;
      const name = `${server}/${RELAY_REPOSITORY}${parsed.digest === null ? ':' : '@'}${reference}`;
      const authconfig = { username: RELAY_USER, password: secret, serveraddress: server };
      await this.follow({ name, authconfig, relay }, order);
      return await this.keep(name, order.spec.image, true);
    } catch (error) {
      if (order.signal.aborted || tried >= MOST_TRIES || !isOfAnotherRelay(reasonOf(error), relay.port)) throw error;
    } finally {
      relay.end();
    }
    return this.pullRelayed(order, parsed, registries, tried + 1);
  }

  private async relayOrder(
    spec: WorkloadSpec,
    parsed: ImageReference,
    registries: DockerRegistries,
  ): Promise<RelayOrder> {
    const route = pullRoute(parsed, registries);
    return {
      ...route,
      registries: await Promise.all(
        route.registries.map(async (registry) => ({
          ...registry,
          authorities: await registryAuthorities(new URL(registry.origin).host),
        })),
      ),
      credentials: spec.registry ? { username: spec.registry.username, password: spec.registry.password } : null,
      allowed: this.policy.allowed,
      mostBytes: this.policy.limits.mostBytes,
      secret: randomBytes(32).toString('hex'),
    };
  }

  /**
   * Pulls without a relay, on a host whose Docker uses a proxy. That proxy must keep Docker from this host's networks.
   */
  private async pullDirectly(order: ImageOrder, parsed: ImageReference): Promise<PulledImage> {
    const { image, registry } = order.spec;
    const name = withTag(image);
    await this.requireReachable(parsed);
    const serveraddress = canonicalName(parsed).registry === DOCKER_HUB ? HUB_SERVER : String(parsed.registry);
    await this.follow(registry ? { name, authconfig: { ...registry, serveraddress } } : { name }, order);
    return { ...(await this.keep(name, image, false)), plainName: name };
  }

  /**
   * Throws PullRefused if the registry is at an address that renters must not reach: they must not get its answers
   * either.
   */
  private async requireReachable(image: ImageReference): Promise<void> {
    const { allowed } = this.policy;
    const { registry } = canonicalName(image);
    if (allowed === null || registry === DOCKER_HUB) return;
    const host = registry.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
    const found = await lookup(host, { all: true }).catch(() => []);
    if (found.some(({ address }) => isForbidden(address, allowed))) throw new PullRefused('forbidden_address');
  }

  private async follow({ name, authconfig, relay }: Source, { onProgress, signal }: ImageOrder): Promise<void> {
    const { engine, clock } = this;
    const options = authconfig ? { authconfig } : {};
    const stream = await engine.call('begin the pull', DEADLINE_MS.pullSilence, (docker) => docker.pull(name, options));
    const watch = new PullWatch(this.policy.limits, clock.monotonic());
    let [heardAt, told] = [clock.monotonic(), 0];
    await new Promise<void>((resolve, reject) => {
      let timer = clock.schedule(LOOK_MS, () => void look());
      const end = (error: Error | null) => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        relay?.ended.removeEventListener('abort', onRelayEnd);
        if (error) (stream as unknown as { destroy(): void }).destroy();
        if (error) reject(error);
        else resolve();
      };
      const onAbort = () => end(signal.reason as Error);
      const onRelayEnd = () =>
        end(new PullStopped(UNAVAILABLE, 'what asks the registry has ended on this machine; try again'));
      const look = async () => {
        const complaint = await this.complaint(watch, heardAt);
        if (complaint) return end(complaint);
        timer = clock.schedule(LOOK_MS, () => void look());
      };
      signal.addEventListener('abort', onAbort, { once: true });
      relay?.ended.addEventListener('abort', onRelayEnd, { once: true });
      if (signal.aborted) return onAbort();
      if (relay?.ended.aborted) return onRelayEnd();
      engine.docker.modem.followProgress(
        stream,
        (error) => end(error),
        (event: PullEvent) => {
          heardAt = clock.monotonic();
          // After a pull has begun, Docker reports its failure only as an event, and ends the stream normally.
          if (event.error !== undefined) return end(new Error(event.error));
          watch.add(event);
          const tenth = Math.floor(watch.percent / 10);
          if (tenth > told) onProgress('pulling', `${tenth * 10} % of the image pulled`);
          told = Math.max(told, tenth);
        },
      );
    });
  }

  private async complaint(watch: PullWatch, heardAt: number): Promise<PullStopped | undefined> {
    const now = this.clock.monotonic();
    if (now - heardAt >= DEADLINE_MS.pullSilence)
      return new PullStopped(TOO_SLOW, 'the registry sent nothing for a minute');
    const free = await this.policy.freeShare().catch(() => 1);
    if (free < LEAST_FREE_SHARE)
      return new PullStopped(UNAVAILABLE, 'the disk of this machine is full; try another machine');
    const slow = watch.complaint(now);
    return slow === undefined ? undefined : new PullStopped(TOO_SLOW, slow);
  }

  /**
   * Gives the image our name. Removes the name of its pull if `takesNameAway`. Throws PullStopped if the image is too
   * large.
   */
  private async keep(pulledAs: string, image: string, takesNameAway: boolean): Promise<PulledImage> {
    const { engine } = this;
    const pulled = await engine.call('inspect the image', DEADLINE_MS.inspect, (docker) =>
      imageOf(docker, pulledAs).inspect(),
    );
    const { mostBytes } = this.policy.limits;
    if (pulled.Size > mostBytes) {
      await this.removeName(pulledAs);
      const needed = Math.ceil(pulled.Size / 1e9);
      throw new PullStopped(UNAVAILABLE, `it takes ${needed} GB, and this machine takes ${mostBytes / 1e9} GB at most`);
    }
    const name = pulledName(image);
    const colon = name.lastIndexOf(':');
    const [repo, tag] = [name.slice(0, colon), name.slice(colon + 1)];
    await engine.call('name the image', DEADLINE_MS.inspect, (docker) => docker.getImage(pulled.Id).tag({ repo, tag }));
    const repository = pulledAs.replace(/@.*$/, '').replace(/:[^/:]+$/, '');
    const digests = (pulled.RepoDigests as string[] | null) ?? [];
    const digest = digests.find((entry) => entry.startsWith(`${repository}@`))?.split('@')[1];
    if (takesNameAway) await this.removeName(pulledAs);
    return { id: pulled.Id, name, digest };
  }

  private async removeName(name: string): Promise<void> {
    await this.engine
      .call('remove an image', DEADLINE_MS.remove, (docker) => imageOf(docker, name).remove())
      .catch((error: unknown) => this.logger.warn(`the image ${name} could not be removed: ${messageOf(error)}`));
  }
}

/** A pull that the agent has ended; `code` tells the control plane whether it was too slow. */
class PullStopped extends CodedError<typeof TOO_SLOW | typeof UNAVAILABLE> {}

/** Returns whether Docker's error names the address of another relay, which did not answer. */
function isOfAnotherRelay(said: string, port: number): boolean {
  return (
    [...said.matchAll(/127\.0\.0\.1:(\d+)/g)].some(([, other]) => Number(other) !== port) &&
    said.includes(RELAY_REPOSITORY)
  );
}

export function withTag(image: string): string {
  return /[:@][^/]+$/.test(image) ? image : `${image}:latest`;
}
