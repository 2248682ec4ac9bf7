import type Docker from 'dockerode';
import { Agent } from 'node:http';
import { withTimeout, type Clock } from '../../../shared/clock.js';
import { SetupError, messageOf } from '../../../shared/coded-error.js';
import { parseImageReference } from '../../../shared/image-reference.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { Failure } from '../../domain/failure.js';
import type { DockerRegistries } from '../../domain/registries.js';
import type { UnansweredCall } from '../../domain/unanswered-call.js';
import { Docker as DockerClient } from './dockerode.js';

export const DEADLINE_MS = {
  create: 240_000,
  start: 180_000,
  inspect: 30_000,
  remove: 180_000,
  pullSilence: MINUTE_MS,
} as const;

/** No Docker restarts in less time. */
const LEAST_RESTART_MS = 100;

const UNREACHABLE = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'ECONNRESET', 'EPIPE']);

/** The fields of Docker's info that the agent uses. */
export interface DockerInfo extends DockerRegistries {
  ServerVersion: string;
  /** The storage driver. */
  Driver: string;
  /** The data root. */
  DockerRootDir: string;
  CgroupDriver?: string;
  /** Its wall clock, RFC 3339. */
  SystemTime?: string;
  /** Such as `name=userns`. */
  SecurityOptions?: string[] | null;
  /** The id of this Docker. */
  ID?: string;
  LiveRestoreEnabled: boolean;
  Runtimes?: Record<string, unknown>;
}

const IMAGE_ID = /^sha256:[0-9a-f]{64}$/;

/**
 * Returns a handle on an image by its reference or ID. Throws Failure IMAGE_UNAVAILABLE for anything else, because the
 * name becomes part of the path of a request to Docker.
 */
export function imageOf(docker: Docker, name: string): Docker.Image {
  requireImageName(name);
  return docker.getImage(name);
}

/** Throws Failure IMAGE_UNAVAILABLE unless the name is an image reference or ID. */
export function requireImageName(name: string): void {
  if (!parseImageReference(name) && !IMAGE_ID.test(name))
    throw new Failure('IMAGE_UNAVAILABLE', `"${name}" is not an image reference such as registry.example.com/name:tag`);
}

/** Throws SetupError if Docker has no runtime of this name; null, for Docker's default, is always accepted. */
export async function requireRuntime(engine: Engine, name: string | null): Promise<void> {
  const { Runtimes = {} } = await engine.info();
  if (name === null || name in Runtimes) return;
  throw new SetupError(
    `GPURENT_AGENT_CONTAINER_RUNTIME is "${name}", and Docker knows ${Object.keys(Runtimes).join(', ')}: add it to "runtimes" in /etc/docker/daemon.json and reload Docker`,
  );
}

/** Calls Docker's API, with a deadline on every call. */
export class Engine {
  readonly docker: Docker;
  /** The same Docker, with a new connection for each call. */
  private readonly anew: Docker;
  private readonly unanswered = new Map<string, Map<Promise<unknown>, { what: string; since: number }>>();
  /** What Docker said last of itself, and when it was asked, in monotonic milliseconds. */
  private described: { info: DockerInfo; askedAt: number } | undefined;
  /** By how much Docker's clock is surely ahead of this host's, in milliseconds; undefined: it has not told its time. */
  clockAheadMs: number | undefined;

  constructor(
    socketPath: string,
    private readonly clock: Clock,
  ) {
    // Without `host` and `port`, the library would use another machine's Docker if DOCKER_HOST names one.
    const local = { socketPath, host: undefined, port: undefined };
    this.docker = new DockerClient(local);
    const anew = { ...local, agent: new Agent({ keepAlive: false }) };
    this.anew = new DockerClient(anew);
  }

  /** Returns the answer of `call`. Throws Failure DOCKER_UNREACHABLE, or DOCKER_TIMEOUT when the deadline passes. */
  async call<T>(what: string, deadlineMs: number, call: (docker: Docker) => Promise<T>): Promise<T> {
    return this.within(what, deadlineMs, call(this.docker));
  }

  /**
   * Makes a call that creates or starts something of `owner`. The call can still take effect after its deadline, so it
   * is tracked until Docker answers it.
   */
  async callTracked<T>(
    owner: string,
    what: string,
    deadlineMs: number,
    call: (docker: Docker) => Promise<T>,
  ): Promise<T> {
    const promise = call(this.docker);
    const calls = this.unanswered.get(owner) ?? new Map<Promise<unknown>, { what: string; since: number }>();
    this.unanswered.set(owner, calls.set(promise, { what, since: this.clock.monotonic() }));
    const forget = () => {
      calls.delete(promise);
      if (calls.size === 0) this.unanswered.delete(owner);
    };
    promise.then(forget, forget);
    return this.within(what, deadlineMs, promise);
  }

  /** Returns the tracked calls of all owners, with their age in milliseconds. */
  unansweredCalls(): UnansweredCall[] {
    const now = this.clock.monotonic();
    return [...this.unanswered].flatMap(([instanceId, calls]) =>
      [...calls.values()].map(({ what, since }) => ({ instanceId, what, ms: now - since })),
    );
  }

  /** Returns whether Docker still has to answer a tracked call of the owner. */
  hasUnanswered(owner: string): boolean {
    return this.unanswered.has(owner);
  }

  /** Resolves once Docker has answered every tracked call of the owner. */
  async whenIdle(owner: string): Promise<void> {
    await Promise.allSettled(Array.from(this.unanswered.get(owner)?.keys() ?? []));
  }

  /**
   * Returns whether Docker answers on a new connection. A Docker that shuts down takes none any more before it ends its containers,
   * but answers on open connections until it has ended them all.
   */
  async isAvailable(): Promise<boolean> {
    return this.call('answer', 5_000, () => this.anew.ping()).then(
      () => true,
      () => false,
    );
  }

  async info(): Promise<DockerInfo> {
    const askedAt = this.clock.monotonic();
    const asked = this.clock.now();
    const info = await this.call(
      'describe itself',
      DEADLINE_MS.inspect,
      (docker) => docker.info() as Promise<DockerInfo>,
    );
    this.described = { info, askedAt };
    this.clockAheadMs = surelyAhead(Date.parse(info.SystemTime ?? ''), asked, this.clock.now());
    return info;
  }

  /** Returns the last {@link info} unless Docker can have restarted since: Docker starts two programs for each. */
  async recentInfo(): Promise<DockerInfo> {
    const { described } = this;
    return described && this.clock.monotonic() - described.askedAt < LEAST_RESTART_MS ? described.info : this.info();
  }

  private async within<T>(what: string, deadlineMs: number, promise: Promise<T>): Promise<T> {
    try {
      return await withTimeout(this.clock, deadlineMs, promise, () => {
        throw new Failure('DOCKER_TIMEOUT', `Docker did not ${what} within ${deadlineMs / 1000} seconds`);
      });
    } catch (error) {
      throw isUnreachable(error)
        ? new Failure('DOCKER_UNREACHABLE', 'Docker does not answer on this host', { cause: error })
        : error;
    }
  }

  /** Throws SetupError, which says what to do, if Docker does not answer. */
  async require(socketPath: string): Promise<void> {
    try {
      await this.call('answer', 10_000, (docker) => docker.ping());
    } catch (error) {
      const cause = error instanceof Error && error.cause ? error.cause : error;
      throw new SetupError(
        `Docker does not answer at ${socketPath} (${messageOf(cause)}); start it ("systemctl start docker"), or set GPURENT_AGENT_DOCKER_SOCKET`,
        { cause: error },
      );
    }
  }
}

/** Returns the HTTP status with which Docker refused a call; undefined if the error is not Docker's. */
export function statusOf(error: unknown): number | undefined {
  return (error as { statusCode?: number }).statusCode;
}

/** Returns Docker's own error message, without the library's wrapping. */
export function reasonOf(error: unknown): string {
  const { json, reason } = error as { json?: { message?: string }; reason?: string };
  const [, said] = /^\(HTTP code \d+\) [^-]* - ([^]*)$/.exec(messageOf(error)) ?? [];
  return json?.message ?? wordsOf(said?.trim()) ?? reason ?? messageOf(error);
}

/** Returns the message in an answer that the library has not parsed. */
function wordsOf(answer: string | undefined): string | undefined {
  if (!answer?.startsWith('{')) return answer;
  try {
    return (JSON.parse(answer) as { message?: string }).message ?? answer;
  } catch {
    return answer;
  }
}

function isUnreachable(error: unknown): boolean {
  const { code } = error as { code?: string };
  return statusOf(error) === undefined && (UNREACHABLE.has(code ?? '') || messageOf(error).includes('socket hang up'));
}

/** Returns by how much a clock that showed `told` between `asked` and `answered` is ahead at least; negative: it is behind. */
function surelyAhead(told: number, asked: number, answered: number): number | undefined {
  if (Number.isNaN(told)) return undefined;
  return Math.round(told > answered ? told - answered : Math.min(told - asked, 0));
}
