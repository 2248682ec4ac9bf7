import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { saveIdentity } from '../../agent/link/identity.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { importEmptyImage } from '../../agent/runtime/docker/images/empty-image.js';
import { systemClock } from '../../shared/clock.js';
import { Daemon } from '../../scripts/daemon.js';
import { eventually } from '../../scripts/eventually.js';
import { DOCKER_SOCKET } from '../harness/docker.js';
import { readWire } from '../harness/wire.js';

const PROGRAM = fileURLToPath(new URL('../../bundle/agent.js', import.meta.url));
/** As in its unit of systemd. */
const [FLAG, ...FLAGS] = ['--max-semi-space-size=1', '--no-opt'] as const;
const GUEST_TOOLS = resolve('.local/guest-tools');
/** Has no files: containers run on the guest tools alone. */
const IMAGE = 'gpurent/bench:1';
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti';

/** The only port of the agent, so that the benchmark knows where SSH of its workload answers. */
export const SSH_PORT = 23_517;

type Desired = { running: { mayCreate: boolean } } | { stopped: object } | { absent: object };
export interface LoggedLines {
  lines: { at: string; text: string }[];
}

/** An agent in a process of its own on the real Docker, connected to a control plane that only sends what a benchmark asks for. */
export class MeasuredAgent {
  private readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-agent-'));
  private readonly server = new Server();
  private readonly waiting = new Map<string, (result: { outcome: string; message: string }) => void>();
  private stream: ServerDuplexStream<unknown, object> | undefined;
  private daemon: Daemon | undefined;
  private sequence = 0;
  private gpuUuids: string[] = [];
  onLog: (chunk: LoggedLines) => void = () => {};

  /** Throws an error that says what is missing if there is no Docker Engine. */
  static async start(env: Record<string, string> = {}): Promise<MeasuredAgent> {
    const engine = new Engine(DOCKER_SOCKET, systemClock);
    await engine.require(DOCKER_SOCKET);
    await importEmptyImage(engine, IMAGE);
    const made = new MeasuredAgent();
    await made.connect(env);
    return made;
  }

  get pid(): number {
    return this.daemon?.pid ?? 0;
  }

  /** Returns the process that guards web ports, which the agent has started. */
  get proxyPid(): number {
    const children = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8').trim().split(' ');
    const proxy = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('proxy/main.js'));
    return Number(proxy);
  }

  /** Returns the processor time of all threads since the start, in milliseconds. */
  cpuMs(): number {
    const tasks = `/proc/${this.pid}/task`;
    const spent = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]);
    return spent.reduce((sum, ns) => sum + Number(ns), 0) / 1e6;
  }

  /**
   * Deploys or starts the workload, and resolves once the agent has reported that its SSH answers. `gpu`: the index of its only GPU;
   * without it, it has all.
   */
  bringUp(instanceId: string, mayCreate: boolean, command: string[] = [], gpu?: number): Promise<void> {
    const spec = {
      image: IMAGE,
      command,
      interactive: command.length === 0,
      sshUser: 'root',
      sshAuthorizedKey: PUBLIC_KEY,
      gpuUuids: gpu === undefined ? this.gpuUuids : this.gpuUuids.slice(gpu, gpu + 1),
      diskGb: 10,
      cpuMillis: 1_000,
      memoryMb: 256,
    };
    return this.order(instanceId, { running: { mayCreate, spec } } as Desired);
  }

  stopWorkload(instanceId: string): Promise<void> {
    return this.order(instanceId, { stopped: { releaseGpus: false } });
  }

  destroy(instanceId: string): Promise<void> {
    return this.order(instanceId, { absent: {} });
  }

  follow(instanceId: string): void {
    this.stream?.write({ logSubscribe: { subscriptionId: randomUUID(), instanceId, tail: 1, since: '' } });
  }

  async stop(): Promise<void> {
    await this.daemon?.stop();
    this.server.forceShutdown();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async order(instanceId: string, desired: Desired): Promise<void> {
    const commandId = randomUUID();
    const { outcome, message } = await new Promise<{ outcome: string; message: string }>((answer) => {
      this.waiting.set(commandId, answer);
      this.stream?.write({ command: { commandId, instanceId, sequence: ++this.sequence, ...desired } });
    });
    if (outcome !== 'COMMAND_OUTCOME_DONE') throw new Error(`${outcome}: ${message}`);
  }

  private async connect(env: Record<string, string>): Promise<void> {
    this.server.addService(readWire().service, { Connect: (stream: unknown) => this.serve(stream as never) });
    const port = await new Promise<number>((bound, refuse) =>
      this.server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, at) =>
        error ? refuse(error) : bound(at),
      ),
    );
    const stateDir = join(this.folder, 'state');
    mkdirSync(stateDir);
    const proof = { kind: 'secret', credential: 'bench' } as const;
    saveIdentity(stateDir, { hostId: randomUUID(), controlPlane: `127.0.0.1:${port}`, proof });
    const settings = {
      GPURENT_AGENT_STATE_DIR: stateDir,
      GPURENT_AGENT_GUEST_TOOLS: GUEST_TOOLS,
      GPURENT_AGENT_DOCKER_SOCKET: DOCKER_SOCKET,
      GPURENT_AGENT_PUBLIC_ADDRESS: '127.0.0.1',
      GPURENT_AGENT_BIND_ADDRESS: '127.0.0.1',
      GPURENT_AGENT_PORTS: `${SSH_PORT}-${SSH_PORT}`,
      GPURENT_AGENT_GPUS: 'simulated:1',
      GPURENT_AGENT_SUBNET: '10.217.0.0/16',
      GPURENT_AGENT_DISK_GB: '1000',
      GPURENT_AGENT_VMS: 'off',
      ...env,
    };
    this.daemon = Daemon.start('the agent', FLAG, [...FLAGS, PROGRAM, 'run'], settings, join(this.folder, 'agent.log'));
    await Promise.race([
      this.daemon.untilEnded(),
      eventually('the agent to connect', () => this.stream !== undefined, 60_000),
    ]);
  }

  private serve(stream: ServerDuplexStream<Record<string, unknown>, object>): void {
    stream.on('error', () => undefined);
    stream.on('data', (message: Record<string, unknown>) => this.hear(stream, message));
  }

  private hear(stream: ServerDuplexStream<unknown, object>, message: Record<string, unknown>): void {
    if (message['hello']) {
      const { inventory } = message['hello'] as { inventory: { gpus: { uuid: string }[] } };
      this.gpuUuids = inventory.gpus.map(({ uuid }) => uuid);
      stream.write({ welcome: { protocol: 1, epoch: 1, incarnation: 'bench', heartbeatMs: 10_000, floors: [] } });
      this.stream = stream;
    }
    if (message['logChunk']) this.onLog(message['logChunk'] as LoggedLines);
    const result = message['commandResult'] as { commandId: string; outcome: string; message: string } | undefined;
    if (!result || result.outcome === 'COMMAND_OUTCOME_ACCEPTED') return;
    stream.write({ resultAck: { commandId: result.commandId } });
    this.waiting.get(result.commandId)?.(result);
    this.waiting.delete(result.commandId);
  }
}

/** Returns the resident memory of a process, in MB of 10^6 bytes. */
export function residentMb(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (Number(kib) * 1024) / 1e6;
}
