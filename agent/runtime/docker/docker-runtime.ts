import type Docker from 'dockerode';
import type { ContainerInspectInfo } from 'dockerode';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { sleep, type Clock } from '../../../shared/clock.js';
import type { Access, WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../../domain/failure.js';
import { publishPorts, publishable } from '../../domain/ports.js';
import type { UnansweredCall } from '../../domain/unanswered-call.js';
import { graceOf } from '../../domain/stop-grace.js';
import type { PortAllocator } from '../../host/ports.js';
import {
  portsOf,
  type LocatedWorkload,
  type WorkloadSummary,
  type LogLine,
  type OnProgress,
  type ExistingWorkload,
  type Runtime,
  type WorkloadInfo,
  type Workload,
} from '../workload.js';
import { ACCESS_DIR, type AccessFiles } from './files/access-files.js';
import { SSH_KEY_VARIABLE } from './containers/container-options.js';
import type { DataRoots } from './data-roots/data-root-guard.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from './engine.js';
import { containerName, LABEL, traitsOf } from './labels.js';
import { locationOf } from './containers/location.js';
import { LineReader, readLines } from './containers/log-lines.js';
import type { InstanceNetworks } from './networks/networks.js';
import type { PreparedWorkload, DockerHost, WorkloadKind } from './workload-kind.js';
import { startFailureOf } from './containers/start-failure.js';

const PORT_TRIES = 5;
/** Time for Docker to confirm that it has killed a container that did not end. */
const KILL_MS = 15_000;
const POLL_MS = 200;
const SSH_PROBE_MS = 2_000;
/** States in Docker's list of containers; a container in any other state does not run. */
const LISTED_STATES: Readonly<Record<string, WorkloadSummary['state']>> = {
  running: 'running',
  restarting: 'running',
  paused: 'running',
  created: 'created',
};
const NEVER = '0001-01-01T00:00:00Z';

/** The firewall rules between renters and the host's networks. */
export interface Guard {
  /** Puts the rules in place. Throws SetupError if that fails. */
  ensure(): Promise<void>;
}

export interface DockerRuntimeParts {
  engine: Engine;
  clock: Clock;
  host: Pick<DockerHost, 'hostId' | 'bindAddress' | 'hasDiskQuota'>;
  kinds: Readonly<Record<WorkloadInfo['kind'], WorkloadKind>>;
  ports: PortAllocator;
  networks: InstanceNetworks;
  guard: Guard;
  dataRoot: DataRoots;
  accessFiles: AccessFiles;
}

/** Runs workloads as Docker containers, which are named after their instances and have a label with their host. */
export class DockerRuntime implements Runtime {
  constructor(private readonly parts: DockerRuntimeParts) {}

  /**
   * Removes networks and files that a crash has left. Safe to repeat. Throws SetupError if Docker does not show
   * instances that were created here.
   */
  async prepare(): Promise<void> {
    await this.parts.dataRoot.require();
    const kept = new Set((await this.list()).map(({ instanceId }) => instanceId));
    await this.parts.networks.prune(kept);
    await this.parts.accessFiles.prune(kept);
    for (const kind of Object.values(this.parts.kinds)) await kind.forgetAllBut(kept);
    void this.parts.networks.open();
  }

  async find(instanceId: string): Promise<Workload> {
    const info = await this.inspect(instanceId);
    if (!info) return { state: 'absent' };
    const found = describe(info);
    return { ...found, tokenHash: (await this.parts.accessFiles.tokenHashOf(instanceId)) ?? found.tokenHash };
  }

  /** Makes a single call to Docker, so that a stuck container does not block it. */
  async list(): Promise<WorkloadSummary[]> {
    const containers = await this.parts.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true, filters: { label: [`${LABEL.host}=${this.parts.host.hostId}`] } }),
    );
    await this.parts.dataRoot.confirm();
    return containers.map(({ Labels, State }) => ({ ...traitsOf(Labels), state: LISTED_STATES[State] ?? 'stopped' }));
  }

  /** Returns where the host can find out what a workload uses; undefined: it does not run. */
  async locate(instanceId: string): Promise<LocatedWorkload | undefined> {
    const info = await this.inspect(instanceId);
    if (!info) return undefined;
    const workload = describe(info);
    if (workload.state !== 'running') return undefined;
    return locationOf(this.parts.engine, info, workload, await this.parts.host.hasDiskQuota());
  }

  fetchImage(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void> {
    return this.parts.kinds[kindOf(spec)].fetch(spec, onProgress, signal);
  }

  async create(instanceId: string, sequence: number, spec: WorkloadSpec): Promise<void> {
    const prepareWorkload = await this.parts.kinds[kindOf(spec)].prepareWorkload(spec);
    const hasSsh = spec.sshAuthorizedKey !== '';
    const count = publishable(spec.ports).length + (hasSsh ? 1 : 0);
    const refused = new Set<number>();
    for (let attempt = 1; ; attempt++) {
      const hostPorts = await this.parts.ports.choose(count, instanceId, refused);
      const [sshPort, others] = hasSsh ? [hostPorts[0] ?? null, hostPorts.slice(1)] : [null, hostPorts];
      const info = {
        instanceId,
        sequence,
        sshPort,
        ...traitsOfSpec(spec, prepareWorkload.reference, others),
      };
      try {
        await this.parts.dataRoot.note(instanceId);
        await this.createContainer(prepareWorkload, info);
        await this.bringUp(instanceId);
        return;
      } catch (error) {
        await this.remove(instanceId);
        const taken = error instanceof Failure && error.code === 'PORT_TAKEN' && count > 0;
        if (!taken || attempt === PORT_TRIES) throw asFailure(error, 'the container could not be created');
        for (const port of portsNamed(error.message, hostPorts)) refused.add(port);
      } finally {
        this.parts.ports.release(hostPorts);
      }
    }
  }

  private async createContainer(prepareWorkload: PreparedWorkload, info: WorkloadInfo): Promise<void> {
    await prepareWorkload.create(info, await this.parts.networks.provide(info.instanceId));
  }

  async start(instanceId: string): Promise<void> {
    await this.bringUp(instanceId, () => this.parts.networks.restore(instanceId, containerName(instanceId)));
  }

  /** Starts the container, after the firewall rules are in place. */
  private async bringUp(instanceId: string, restore: () => Promise<void> = async () => {}): Promise<void> {
    const isGuarded = restore()
      .catch((error: unknown) => {
        throw asFailure(error, 'the network of the container could not be restored');
      })
      .then(() => this.parts.guard.ensure());
    // When one fails, the other must not be at work any more: a removal can follow.
    const steps = await Promise.allSettled([isGuarded, this.prepareStart(instanceId)]);
    for (const step of steps) if (step.status === 'rejected') throw step.reason as Error;
    try {
      await this.parts.engine.callTracked(instanceId, 'start the container', DEADLINE_MS.start, (docker) =>
        docker.getContainer(containerName(instanceId)).start(),
      );
    } catch (error) {
      // 304: it is already running.
      if (statusOf(error) === 304) return;
      throw startFailureOf(error);
    }
  }

  private async prepareStart(instanceId: string): Promise<void> {
    const workload = await this.find(instanceId);
    if (workload.state !== 'absent') await this.parts.kinds[workload.kind].prepare(workload);
  }

  /**
   * Stops the workload. Docker's own stop can hang, so the workload is killed after its grace even if Docker has not
   * answered that call.
   */
  async stop(instanceId: string): Promise<void> {
    const container = (docker: Docker) => docker.getContainer(containerName(instanceId));
    const found = await this.find(instanceId);
    if (found.state !== 'running') return;
    const graceS = graceOf(Math.max(this.parts.clock.now() - found.startedAt, 0), this.parts.kinds[found.kind]);
    await this.parts.engine
      .call('stop the container', graceS * 1000 + KILL_MS, (docker) => container(docker).stop({ t: graceS }))
      .catch((error: unknown) => {
        if (!isTimeout(error)) ignoreStatus(error, 304, 404);
      });
    while ((await this.find(instanceId)).state === 'running') {
      await this.parts.engine
        .call('kill the container', DEADLINE_MS.inspect, (docker) => container(docker).kill())
        .catch((error: unknown) => ignoreStatus(error, 404, 409));
      await sleep(this.parts.clock, POLL_MS);
    }
  }

  async remove(instanceId: string): Promise<void> {
    for (;;) {
      const found = await this.inspect(instanceId);
      this.parts.networks.note(instanceId, found?.HostConfig.NetworkMode);
      if (!found || (await this.removeContainer(instanceId))) break;
      await sleep(this.parts.clock, POLL_MS);
    }
    await this.parts.networks.remove(instanceId);
    await this.parts.accessFiles.remove(instanceId);
    for (const kind of Object.values(this.parts.kinds)) await kind.forget(instanceId);
    await this.parts.dataRoot.forget(instanceId);
  }

  /** Returns whether Docker has removed the container; false if it was already removing it. */
  private async removeContainer(instanceId: string): Promise<boolean> {
    try {
      await this.parts.engine.call('remove the container', DEADLINE_MS.remove, (docker) =>
        docker.getContainer(containerName(instanceId)).remove({ force: true, v: true }),
      );
      return true;
    } catch (error) {
      // 409: the removal is under way.
      ignoreStatus(error, 404, 409);
      return false;
    }
  }

  async replaceAccess(instanceId: string, access: Access): Promise<{ sshKeyStays: boolean }> {
    const info = await this.inspect(instanceId);
    if (!info) return { sshKeyStays: false };
    await this.parts.accessFiles.replace(instanceId, access);
    return { sshKeyStays: !takesKey(info, access.sshAuthorizedKey) };
  }

  async tail(instanceId: string, lines: number): Promise<LogLine[]> {
    const output = await this.parts.engine
      .call('read the log', DEADLINE_MS.inspect, (docker) =>
        docker
          .getContainer(containerName(instanceId))
          .logs({ follow: false, stdout: true, stderr: true, timestamps: true, tail: lines }),
      )
      .catch((error: unknown) => {
        ignoreStatus(error, 404);
        return Buffer.alloc(0);
      });
    return readLines(output).slice(-lines);
  }

  async *follow(instanceId: string, since: string, signal: AbortSignal, newest?: number): AsyncGenerator<LogLine[]> {
    const after = since === '' ? {} : { since: String(Math.floor(Date.parse(since) / 1000)) };
    const tail = newest === undefined ? {} : { tail: newest };
    const stream = (await this.parts.engine.call('follow the log', DEADLINE_MS.inspect, (docker) =>
      docker
        .getContainer(containerName(instanceId))
        .logs({ follow: true, stdout: true, stderr: true, timestamps: true, ...tail, ...(after as { since?: never }) }),
    )) as unknown as Readable;
    const stop = () => stream.destroy();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const reader = new LineReader();
    try {
      for await (const chunk of stream) {
        // Docker's own filter works in whole seconds.
        const lines = reader.push(chunk as Buffer).filter(({ at }) => at > since);
        if (lines.length > 0) yield lines;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  /** Returns whether a server sends the SSH greeting at the port. */
  sshAnswers(port: number): Promise<boolean> {
    return new Promise((resolve) => {
      const address = this.parts.host.bindAddress === '0.0.0.0' ? '127.0.0.1' : this.parts.host.bindAddress;
      const socket = connect({ host: address, port });
      const timer = this.parts.clock.schedule(SSH_PROBE_MS, () => end(false));
      const end = (answers: boolean) => {
        timer.cancel();
        socket.destroy();
        resolve(answers);
      };
      socket.once('data', (data) => end(data.toString('latin1').startsWith('SSH-2.0-')));
      socket.once('error', () => end(false));
      socket.once('close', () => end(false));
    });
  }

  async checkPorts(workload: WorkloadInfo): Promise<void> {
    for (const port of portsOf(workload)) await this.parts.ports.check(port);
  }

  unansweredCalls(): UnansweredCall[] {
    return this.parts.engine.unansweredCalls();
  }

  hasUnanswered(instanceId: string): boolean {
    return this.parts.engine.hasUnanswered(instanceId);
  }

  whenIdle(instanceId: string): Promise<void> {
    return this.parts.engine.whenIdle(instanceId);
  }

  /**
   * Returns what Docker knows of the instance's container; undefined if there is none, or if it belongs to another host
   * of the same Docker. Throws Failure DOCKER_UNREACHABLE if Docker now has another data root and so cannot know.
   */
  private async inspect(instanceId: string): Promise<ContainerInspectInfo | undefined> {
    try {
      const info = await this.parts.engine.call('inspect the container', DEADLINE_MS.inspect, (docker) =>
        docker.getContainer(containerName(instanceId)).inspect(),
      );
      return info.Config.Labels[LABEL.host] === this.parts.host.hostId ? info : undefined;
    } catch (error) {
      ignoreStatus(error, 404);
      await this.parts.dataRoot.confirm();
      return undefined;
    }
  }
}

/**
 * Returns whether the workload has this SSH key or will take it. A container of an older agent keeps its first key. A
 * virtual machine counts as taking it, because its keys are replaced only inside of it.
 */
function takesKey({ Config, Mounts }: ContainerInspectInfo, key: string): boolean {
  if (traitsOf(Config.Labels).kind === 'vm') return true;
  return (
    Mounts.some(({ Destination }) => Destination === ACCESS_DIR) || Config.Env.includes(`${SSH_KEY_VARIABLE}=${key}`)
  );
}

function describe({ Config, State, NetworkSettings }: ContainerInspectInfo): ExistingWorkload {
  const info = traitsOf(Config.Labels);
  if (State.StartedAt === NEVER) return { ...info, state: 'created' };
  const startedAt = Date.parse(State.StartedAt);
  const [network] = Object.values(NetworkSettings.Networks);
  if (State.Running) return { ...info, state: 'running', startedAt, address: network?.IPAddress ?? '' };
  return {
    ...info,
    state: 'stopped',
    startedAt,
    finishedAt: Date.parse(State.FinishedAt),
    exitCode: State.ExitCode,
    outOfMemory: State.OOMKilled,
  };
}

function traitsOfSpec(spec: WorkloadSpec, image: string, hostPorts: readonly number[]) {
  const { gpuUuids, diskGb, accessToken, origin } = spec;
  const tokenHash = accessToken === '' ? '' : createHash('sha256').update(accessToken).digest('hex');
  const ports = publishPorts(spec.ports, hostPorts);
  return { kind: kindOf(spec), gpuUuids, diskGb, image, origin, tokenHash, ports };
}

function kindOf({ virtualMachine }: WorkloadSpec): WorkloadInfo['kind'] {
  return virtualMachine ? 'vm' : 'container';
}

/** Returns the ports that Docker's error names; all of them if it names none. */
function portsNamed(complaint: string, ports: readonly number[]): readonly number[] {
  const named = ports.filter((port) => complaint.includes(`:${port}`));
  return named.length > 0 ? named : ports;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Failure && error.code === 'DOCKER_TIMEOUT';
}

function ignoreStatus(error: unknown, ...statuses: number[]): void {
  const status = statusOf(error);
  if (status === undefined || !statuses.includes(status)) throw error;
}

function asFailure(error: unknown, what: string): Failure {
  return error instanceof Failure
    ? error
    : new Failure('CONTAINER_FAILED', `${what}: ${reasonOf(error)}`, { cause: error });
}
