import { fileURLToPath } from 'node:url';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PortRange } from '../../agent/domain/ports.js';
import { ApiClient, type InstanceBody } from './api-client.js';
import { Daemon } from '../../scripts/daemon.js';
import { DOCKER_SOCKET, GUEST_TOOLS, SAMPLE_IMAGE, containersOf, docker, removeContainer } from './docker.js';
import { eventually } from '../../scripts/eventually.js';
import { WatchedLog } from './watched-log.js';
import { OWN_SUBNET, SHARED_SUBNET, takePort, takePorts } from './worker.js';

const run = promisify(execFile);
const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
const CONTROL_PLANE = join(dist, 'bundle/control-plane.js');
const AGENT = join(dist, 'bundle/agent.js');
export const OPERATOR = { email: 'operator@example.com', password: 'operator password' };

/** A store that has an operator and nothing else, and what it is encrypted with. */
const STORE_FILES = ['gpurent.db', 'secret.key'];
let withOperator: Map<string, Buffer> | undefined;

export interface RealOptions {
  /** How many ports its instances may have together. */
  ports?: number;
  gpus?: number;
  /** Where its agent's Docker is; otherwise the one that all tests share. */
  dockerSocket?: string;
  /** Further settings of its control plane. */
  controlPlaneEnv?: Record<string, string>;
  /** Further settings of its agent. */
  agentEnv?: Record<string, string>;
  /** Where its agent finds the control plane that is at the given address. */
  wayToControlPlane?: (address: string) => Promise<string>;
}

/** Both programs as processes, on a real Docker, reached through public interfaces only. */
export class RealPlatform {
  readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-real-'));
  /** Of its instances. */
  readonly ports: PortRange;
  readonly hostName: string;
  hostId = '';
  // It is reached there again after a restart.
  private addresses = { http: `127.0.0.1:${takePort()}`, grpc: `127.0.0.1:${takePort()}` };
  private controlPlane: Daemon | undefined;
  private agent: Daemon | undefined;
  private operatorToken = '';
  private wayToControlPlane = '';
  readonly log = new WatchedLog();

  private constructor(private readonly options: RealOptions) {
    this.ports = takePorts(options.ports ?? 10);
    this.hostName = `host-${this.ports.first}`;
  }

  /** Starts both, and makes the host a machine. */
  static async start(options: RealOptions = {}): Promise<RealPlatform> {
    const real = await RealPlatform.startEmpty(options);
    const { token } = await real.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', {});
    if (options.wayToControlPlane) real.wayToControlPlane = await options.wayToControlPlane(real.addresses.grpc);
    real.hostId = (JSON.parse((await real.enroll(token)).stdout) as { host_id: string }).host_id;
    await real.startAgent();
    // Where the Docker of the tests cannot hold disks to their size.
    await real.operator.request('PUT', `/v1/operator/machines/${real.hostId}/disk-quota-waiver`);
    return real;
  }

  /** Starts a control plane that has an operator and nothing else. */
  static async startEmpty(options: RealOptions): Promise<RealPlatform> {
    const real = new RealPlatform(options);
    mkdirSync(real.path('agent'));
    real.makeOperator();
    await real.startControlPlane();
    await real.renewSession();
    return real;
  }

  /** The first one in a worker has the command make the store and its key, which takes a second; the others begin with the same. */
  private makeOperator(): void {
    if (!withOperator) {
      execFileSync(process.execPath, [CONTROL_PLANE, 'create-operator', '--email', OPERATOR.email], {
        env: { ...process.env, ...this.controlPlaneEnv },
        input: OPERATOR.password,
        stdio: ['pipe', 'ignore', 'inherit'],
      });
      withOperator = new Map(STORE_FILES.map((name) => [name, readFileSync(this.path(name))]));
    }
    for (const [name, bytes] of withOperator) writeFileSync(this.path(name), bytes, { mode: 0o600 });
  }

  get api(): ApiClient {
    return new ApiClient(`http://${this.addresses.http}`, undefined, this.log.inspect);
  }

  get operator(): ApiClient {
    return this.api.as(this.operatorToken);
  }

  get agentPid(): number {
    return this.agent?.pid ?? 0;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Adds an offer of one GPU of its host, and a template of the sample image. */
  async market(template: Record<string, unknown> = {}): Promise<{ offerId: string; templateId: string }> {
    const offer = await this.operator.post<{ id: string }>('/v1/operator/offers', {
      machine_id: this.hostId,
      num_gpus: 1,
      price_per_hour_micro: 1_000_000,
      storage_price_per_gb_hour_micro: 100,
    });
    const { id: templateId } = await this.operator.post<{ id: string }>('/v1/operator/templates', {
      name: 'Sample',
      image: SAMPLE_IMAGE,
      ...template,
    });
    return { offerId: offer.id, templateId };
  }

  /** Makes a pair of SSH keys; returns the file of the private one. */
  async makeKey(name: string): Promise<string> {
    const file = this.path(name);
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    return file;
  }

  async startControlPlane(): Promise<void> {
    this.controlPlane = Daemon.start(
      'the control plane',
      CONTROL_PLANE,
      ['serve'],
      this.controlPlaneEnv,
      this.path('control-plane.log'),
    );
    this.addresses = await this.controlPlane.firstLine();
  }

  /** Starts the agent and waits until it is connected. */
  async startAgent(): Promise<void> {
    this.agent = Daemon.start('the agent', AGENT, ['run'], this.agentEnv, this.path('agent.log'));
    await eventually('the agent to connect', () => this.isConnected(), 60_000);
  }

  async isConnected(): Promise<boolean> {
    return (await this.operator.get<{ connected: boolean }>(`/v1/operator/machines/${this.hostId}`)).connected;
  }

  /** Signs its operator in again: an older store knows older sessions only. */
  async renewSession(): Promise<void> {
    this.operatorToken = (await this.api.post<{ token: string }>('/v1/auth/sign-in', OPERATOR)).token;
  }

  /** Runs another command of the control plane, on the same settings. */
  control(...args: string[]) {
    return run(process.execPath, [CONTROL_PLANE, ...args], { env: { ...process.env, ...this.controlPlaneEnv } });
  }

  async stopControlPlane(): Promise<void> {
    await this.controlPlane?.stop();
  }

  async killControlPlane(): Promise<void> {
    await this.controlPlane?.stop('SIGKILL');
  }

  async killAgent(): Promise<void> {
    await this.agent?.stop('SIGKILL');
  }

  enroll(token: string, env: Record<string, string> = {}) {
    const controlPlane = this.wayToControlPlane || this.addresses.grpc;
    return run(process.execPath, [AGENT, 'enroll', '--control-plane', controlPlane, '--token', token], {
      env: { ...process.env, ...this.agentEnv, ...env },
    });
  }

  /**
   * Runs the line that enrolls a host in a shell, as its owner would in the folder of a release; then starts the agent. Of
   * `scripts/install-agent` it does what needs no systemd: it hands its options to the agent.
   */
  async paste(line: string): Promise<void> {
    const release = this.path('release');
    mkdirSync(join(release, 'scripts'), { recursive: true });
    const installer = `#!/bin/sh\nexec '${process.execPath}' '${AGENT}' enroll "$@"\n`;
    writeFileSync(join(release, 'scripts/install-agent'), installer, { mode: 0o755 });
    const env = { ...process.env, ...this.agentEnv };
    this.hostId = (
      JSON.parse((await run('sh', ['-c', line], { cwd: release, env })).stdout) as { host_id: string }
    ).host_id;
    await this.startAgent();
  }

  /** Runs the agent in the foreground until it gives up. */
  runAgent(env: Record<string, string>): Promise<Ended> {
    return endOf(run(process.execPath, [AGENT, 'run'], this.asHost(env, 180_000)));
  }

  /** What the agent's command line answers on this host. */
  ask(...args: string[]): Promise<Ended> {
    return endOf(run(process.execPath, [AGENT, ...args], this.asHost({}, 300_000)));
  }

  private asHost(env: Record<string, string>, timeout: number) {
    return { env: { ...process.env, ...this.agentEnv, ...env }, timeout };
  }

  /** Has the agent look at its packet rules, GPUs and SSH now: it does so by itself only every half minute. */
  upkeep(): Promise<void> {
    const asked = request({ socketPath: this.path('agent/agent.sock'), path: '/upkeep', method: 'POST' });
    return new Promise((resolve, reject) => {
      asked.on('error', reject);
      asked.on('response', ({ statusCode }) =>
        statusCode === 204 ? resolve() : reject(new Error(`the upkeep was answered ${statusCode}`)),
      );
      asked.end();
    });
  }

  loseJournal(): void {
    for (const file of readdirSync(this.path('agent'))) {
      if (file.startsWith('journal')) rmSync(join(this.path('agent'), file));
    }
  }

  /** The host's identity in another folder, as an agent beside the running one would have it. */
  copyOfState(): string {
    const copy = this.path('agent-copy');
    mkdirSync(copy, { recursive: true });
    copyFileSync(join(this.path('agent'), 'identity.json'), join(copy, 'identity.json'));
    return copy;
  }

  /** Destroys what is left, ends both programs and removes their files. Throws when either has logged a secret. */
  async stop(): Promise<void> {
    await this.agent?.stop();
    await this.controlPlane?.stop();
    const left = this.options.dockerSocket
      ? []
      : await docker.listContainers({ all: true, filters: { label: [`gpurent.host=${this.hostId}`] } });
    for (const { Id } of left) await removeContainer(Id);
    if (!this.options.dockerSocket) {
      const networks = await docker.listNetworks({ filters: { label: [`gpurent.host=${this.hostId}`] } });
      for (const { Id } of networks) await docker.getNetwork(Id).remove();
    }
    const logs = readdirSync(this.folder).filter((name) => name.endsWith('.log'));
    this.log.check(logs.map((name) => readFileSync(this.path(name), 'utf8')));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get controlPlaneEnv(): Record<string, string> {
    return {
      GPURENT_HTTP_ADDRESS: this.addresses.http,
      GPURENT_GRPC_ADDRESS: this.addresses.grpc,
      GPURENT_DATABASE: this.path('gpurent.db'),
      GPURENT_SECRET_KEY_FILE: this.path('secret.key'),
      GPURENT_LOG_LEVEL: 'trace',
      // Tests ask much more often than people do.
      GPURENT_RATE_LIMIT_ADDRESS: '100000',
      GPURENT_RATE_LIMIT_CREDENTIAL: '100000',
      ...this.options.controlPlaneEnv,
    };
  }

  private get agentEnv(): Record<string, string> {
    return {
      GPURENT_AGENT_STATE_DIR: this.path('agent'),
      GPURENT_AGENT_LOG_LEVEL: 'trace',
      GPURENT_AGENT_GUEST_TOOLS: GUEST_TOOLS,
      GPURENT_AGENT_DOCKER_SOCKET: `unix://${this.options.dockerSocket ?? DOCKER_SOCKET}`,
      GPURENT_AGENT_PUBLIC_ADDRESS: '127.0.0.1',
      GPURENT_AGENT_BIND_ADDRESS: '127.0.0.1',
      GPURENT_AGENT_PORTS: `${this.ports.first}-${this.ports.last}`,
      GPURENT_AGENT_GPUS: `simulated:${this.options.gpus ?? 4}`,
      GPURENT_AGENT_DISK_GB: '1000',
      GPURENT_AGENT_NAME: this.hostName,
      GPURENT_AGENT_SUBNET: this.options.dockerSocket ? OWN_SUBNET : SHARED_SUBNET,
      GPURENT_AGENT_DNS: '192.0.2.53',
      GPURENT_AGENT_VMS: 'off',
      ...this.options.agentEnv,
    };
  }
}

/** How a program has ended. */
interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Waits without blocking: a server closes connections that nobody looks at, and the next request would use one of them. */
function endOf(running: Promise<{ stdout: string; stderr: string }>): Promise<Ended> {
  return running.then(
    (said) => ({ code: 0, ...said }),
    (error: unknown) => {
      const { code, stdout, stderr } = error as Ended;
      return { code, stdout, stderr };
    },
  );
}

/** An emulated guest on a busy machine takes this long to log somebody in. */
const SSH_MS = 300_000;

/** A renter with credit, an SSH key, a template and an offer on the platform's host. */
export class RealRenter {
  private constructor(
    readonly api: ApiClient,
    readonly offerId: string,
    readonly templateId: string,
    readonly sshKeyId: string,
    readonly keyFile: string,
  ) {}

  static async on(real: RealPlatform, template: Record<string, unknown> = {}): Promise<RealRenter> {
    const email = `renter${Date.now()}@example.com`;
    const account = { email, password: 'a renter password', name: 'Renter' };
    const { token, organization } = await real.api.post<{ token: string; organization: { id: string } }>(
      '/v1/auth/sign-up',
      account,
    );
    await real.operator.post(`/v1/operator/organizations/${organization.id}/credits`, {
      amount_micro: 50_000_000,
      reason: 'test',
    });
    const { offerId, templateId } = await real.market(template);
    const keyFile = await real.makeKey(`key-${offerId}`);
    const api = real.api.as(token);
    const key = await api.post<{ id: string }>('/v1/ssh-keys', {
      name: 'key',
      public_key: readFileSync(`${keyFile}.pub`, 'utf8'),
    });
    return new RealRenter(api, offerId, templateId, key.id, keyFile);
  }

  deploy(fields: Record<string, unknown> = {}): Promise<InstanceBody> {
    const { offerId: offer_id, templateId: template_id, sshKeyId: ssh_key_id } = this;
    return this.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, ssh_key_id, disk_gb: 10, ...fields });
  }

  start(id: string): Promise<InstanceBody> {
    return this.api.post<InstanceBody>(`/v1/instances/${id}/start`);
  }

  async destroy(id: string): Promise<void> {
    await this.api.delete(`/v1/instances/${id}`);
    await eventually(
      'the instance to be destroyed',
      async () => (await this.api.get<InstanceBody>(`/v1/instances/${id}`)).status === 'destroyed',
      120_000,
    );
  }

  /** Runs a command over the real OpenSSH client; answers what it prints. */
  async ssh({ ssh_host, ssh_port, ssh_user }: InstanceBody, command: string, keyFile = this.keyFile): Promise<string> {
    const target = `${ssh_user}@${String(ssh_host)}`;
    const { stdout } = await run('ssh', [...sshOptions(keyFile), '-p', String(ssh_port), target, command], {
      timeout: SSH_MS,
    });
    return stdout.trim();
  }

  /** Copies a file there with the real scp: by SFTP, or in the old way. */
  async scp({ ssh_host, ssh_port, ssh_user }: InstanceBody, from: string, to: string, way = '-s'): Promise<void> {
    const target = `${ssh_user}@${String(ssh_host)}:${to}`;
    await run('scp', [way, ...sshOptions(this.keyFile), '-P', String(ssh_port), from, target], { timeout: SSH_MS });
  }

  /** Copies a file there and back with the real rsync. */
  async rsync({ ssh_host, ssh_port, ssh_user }: InstanceBody, from: string, to: string): Promise<void> {
    const shell = ['ssh', ...sshOptions(this.keyFile), '-p', String(ssh_port)].join(' ');
    await run('rsync', ['-az', '-e', shell, from, `${ssh_user}@${String(ssh_host)}:${to}`], { timeout: SSH_MS });
  }

  /** Forwards a port of this machine to one in the instance while `work` runs. */
  async forward<T>({ ssh_host, ssh_port, ssh_user }: InstanceBody, ports: string, work: () => Promise<T>): Promise<T> {
    const target = `${ssh_user}@${String(ssh_host)}`;
    const args = ['-N', '-L', ports, ...sshOptions(this.keyFile), '-p', String(ssh_port), target];
    const client = spawn('ssh', args, { stdio: 'ignore' });
    try {
      return await work();
    } finally {
      client.kill();
    }
  }
}

/** Options of OpenSSH with which it asks nobody anything and uses this key alone. */
export function sshOptions(keyFile: string): string[] {
  const options = [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'IdentitiesOnly=yes',
    'BatchMode=yes',
  ];
  return [...options.flatMap((option) => ['-o', option]), '-i', keyFile];
}

export interface Fingerprint {
  Id: string;
  pid: number;
  startedAt: string;
  RestartCount: number;
}

/** What must not change when nothing is to touch a workload: container, process and moment of its start. */
export async function fingerprintOf(instanceId: string, on = docker): Promise<Fingerprint[]> {
  const containers = await containersOf(instanceId, on);
  return Promise.all(
    containers.map(async ({ Id }) => {
      const { State, RestartCount } = await on.getContainer(Id).inspect();
      return { Id, pid: State.Pid, startedAt: State.StartedAt, RestartCount };
    }),
  );
}
