import type Docker from 'dockerode';
import type { ContainerInspectInfo } from 'dockerode';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { sleep, type Clock } from '../../../shared/clock.js';
import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../../domain/failure.js';
import type { GpuDriver } from '../../host/gpus/driver.js';
import { openFilesLimit } from '../../host/limits.js';
import type { PortAllocator } from '../../host/ports.js';
import type { Listed, LogLine, OnProgress, Placed, Runtime, Traits, Workload } from '../workload.js';
import { LABEL, NETWORK, containerName, containerOptions } from './container-options.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from './engine.js';
import { fetchImage, readImage } from './images.js';
import { LineReader, readLines } from './log-lines.js';

const PORT_TRIES = 5;
const STOP_GRACE_S = 10;
const POLL_MS = 200;
const SSH_PROBE_MS = 2_000;
/** How Docker's list names a state; what it names otherwise does not run. */
const LISTED_STATES: Readonly<Record<string, Listed['state']>> = {
  running: 'running',
  restarting: 'running',
  paused: 'running',
  created: 'created',
};
const NEVER = '0001-01-01T00:00:00Z';

export interface DockerHost {
  hostId: string;
  guestTools: string;
  bindAddress: string;
}

/** Workloads as Docker containers, named after their instances and told apart by the host's label. */
export class DockerRuntime implements Runtime {
  constructor(
    private readonly engine: Engine,
    private readonly clock: Clock,
    private readonly host: DockerHost,
    private readonly ports: PortAllocator,
    private readonly gpus: GpuDriver,
  ) {}

  /** Makes the network on which containers cannot see each other. Safe to repeat. */
  async prepare(): Promise<void> {
    const networks = await this.engine.call('list networks', DEADLINE_MS.inspect, (docker) =>
      docker.listNetworks({ filters: { name: [`^${NETWORK}$`] } }),
    );
    if (networks.length > 0) return;
    await this.engine.call('create the network', DEADLINE_MS.create, (docker) =>
      docker.createNetwork({
        Name: NETWORK,
        Driver: 'bridge',
        CheckDuplicate: true,
        Options: { 'com.docker.network.bridge.enable_icc': 'false' },
      }),
    );
  }

  async find(instanceId: string): Promise<Workload> {
    const info = await this.inspect(instanceId);
    return info ? describe(info) : { state: 'absent' };
  }

  /** One call, whatever a single container may be stuck in. */
  async list(): Promise<Listed[]> {
    const containers = await this.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true, filters: { label: [`${LABEL.host}=${this.host.hostId}`] } }),
    );
    return containers.map(({ Labels, State }) => ({ ...traitsOf(Labels), state: LISTED_STATES[State] ?? 'stopped' }));
  }

  fetchImage(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void> {
    return fetchImage(this.engine, this.clock, { spec, onProgress, signal });
  }

  async create(instanceId: string, sequence: number, spec: WorkloadSpec): Promise<void> {
    const image = await readImage(this.engine, spec.image);
    if (!image) throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} has vanished from this host`);
    const needsPort = spec.sshAuthorizedKey !== '';
    const refused = new Set<number>();
    for (let attempt = 1; ; attempt++) {
      const sshPort = needsPort ? await this.ports.choose(instanceId, refused) : null;
      const gpuAttachment = this.gpus.attachment(spec.gpuUuids);
      const openFiles = await openFilesLimit();
      const options = containerOptions(spec, image, {
        ...this.host,
        instanceId,
        sequence,
        sshPort,
        openFiles,
        gpuAttachment,
      });
      try {
        await this.engine.bring(instanceId, 'create the container', DEADLINE_MS.create, (docker) =>
          docker.createContainer(options),
        );
        await this.start(instanceId);
        return;
      } catch (error) {
        await this.remove(instanceId);
        const taken = error instanceof Failure && error.code === 'PORT_TAKEN' && sshPort !== null;
        if (!taken || attempt === PORT_TRIES) throw asFailure(error, 'the container could not be created');
        refused.add(sshPort);
      } finally {
        if (sshPort !== null) this.ports.release(sshPort);
      }
    }
  }

  async start(instanceId: string): Promise<void> {
    try {
      await this.engine.bring(instanceId, 'start the container', DEADLINE_MS.start, (docker) =>
        docker.getContainer(containerName(instanceId)).start(),
      );
    } catch (error) {
      // 304: it runs already.
      if (statusOf(error) === 304) return;
      if (/port is already allocated|address already in use/i.test(reasonOf(error))) {
        throw new Failure('PORT_TAKEN', `its port is taken on the host: ${reasonOf(error)}`, { cause: error });
      }
      throw asFailure(error, 'the container could not be started');
    }
  }

  /** Docker's own stop may hang: after its grace the workload is killed, whether or not that call was answered. */
  async stop(instanceId: string): Promise<void> {
    const container = (docker: Docker) => docker.getContainer(containerName(instanceId));
    if (!isUp(await this.find(instanceId))) return;
    await this.engine
      .call('stop the container', DEADLINE_MS.stop, (docker) => container(docker).stop({ t: STOP_GRACE_S }))
      .catch((error: unknown) => {
        if (!isTimeout(error)) ignoreStatus(error, 304, 404);
      });
    while (isUp(await this.find(instanceId))) {
      await this.engine
        .call('kill the container', DEADLINE_MS.inspect, (docker) => container(docker).kill())
        .catch((error: unknown) => ignoreStatus(error, 404, 409));
      await sleep(this.clock, POLL_MS);
    }
  }

  async remove(instanceId: string): Promise<void> {
    while ((await this.inspect(instanceId)) !== undefined) {
      await this.engine
        .call('remove the container', DEADLINE_MS.remove, (docker) =>
          docker.getContainer(containerName(instanceId)).remove({ force: true, v: true }),
        )
        // 409: the removal is under way.
        .catch((error: unknown) => ignoreStatus(error, 404, 409));
      await sleep(this.clock, POLL_MS);
    }
  }

  async tail(instanceId: string, lines: number): Promise<LogLine[]> {
    const output = await this.engine
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

  async *follow(instanceId: string, since: string, signal: AbortSignal): AsyncGenerator<LogLine[]> {
    const after = since === '' ? {} : { since: String(Math.floor(Date.parse(since) / 1000)) };
    const stream = (await this.engine.call('follow the log', DEADLINE_MS.inspect, (docker) =>
      docker
        .getContainer(containerName(instanceId))
        .logs({ follow: true, stdout: true, stderr: true, timestamps: true, ...(after as { since?: never }) }),
    )) as unknown as Readable;
    const stop = () => stream.destroy();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const reader = new LineReader();
    try {
      for await (const chunk of stream) {
        // Docker's own filter is as fine as a second.
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

  /** A server that speaks first and names itself. */
  sshAnswers(port: number): Promise<boolean> {
    return new Promise((resolve) => {
      const address = this.host.bindAddress === '0.0.0.0' ? '127.0.0.1' : this.host.bindAddress;
      const socket = connect({ host: address, port });
      const timer = this.clock.schedule(SSH_PROBE_MS, () => end(false));
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

  checkPort(port: number): Promise<void> {
    return this.ports.check(port);
  }

  settled(instanceId: string): Promise<void> {
    return this.engine.settled(instanceId);
  }

  /** Docker's word on a container of ours; a container of another host of the same Docker is none. */
  private async inspect(instanceId: string): Promise<ContainerInspectInfo | undefined> {
    try {
      const info = await this.engine.call('inspect the container', DEADLINE_MS.inspect, (docker) =>
        docker.getContainer(containerName(instanceId)).inspect(),
      );
      return info.Config.Labels[LABEL.host] === this.host.hostId ? info : undefined;
    } catch (error) {
      ignoreStatus(error, 404);
      return undefined;
    }
  }
}

function describe({ Config, State }: ContainerInspectInfo): Placed {
  const traits = traitsOf(Config.Labels);
  if (State.StartedAt === NEVER) return { ...traits, state: 'created' };
  const startedAt = Date.parse(State.StartedAt);
  if (State.Running) return { ...traits, state: 'running', startedAt };
  return {
    ...traits,
    state: 'stopped',
    startedAt,
    finishedAt: Date.parse(State.FinishedAt),
    exitCode: State.ExitCode,
    outOfMemory: State.OOMKilled,
  };
}

function traitsOf(labels: Record<string, string>): Traits {
  const label = (name: string) => labels[name] ?? '';
  return {
    instanceId: label(LABEL.instance),
    sequence: Number(label(LABEL.sequence)),
    gpuUuids: label(LABEL.gpus).split(',').filter(Boolean),
    diskGb: Number(label(LABEL.diskGb)) || 0,
    sshPort: label(LABEL.sshPort) === '' ? null : Number(label(LABEL.sshPort)),
  };
}

function isUp(workload: Workload): boolean {
  return workload.state === 'running';
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
