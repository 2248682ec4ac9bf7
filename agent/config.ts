import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { MIB } from '../shared/bytes.js';
import { SetupError } from '../shared/coded-error.js';
import { parseImageReference } from '../shared/image-reference.js';
import { LOG_LEVELS, parseLogFormat, type LogFormat } from '../shared/logger.js';
import { unknownSettings } from '../shared/settings-file.js';
import { Settings } from '../shared/settings.js';
import { certificateFiles, type CertificateFiles } from '../shared/network/server-identity.js';
import { MINUTE_MS } from '../shared/time.js';
import type { EgressPolicy } from './domain/egress.js';
import type { LocalImages } from './domain/local-images.js';
import type { PortRange } from './domain/ports.js';
import type { PullLimits } from './domain/pull-limits.js';
import { parseSubnet, type Subnet } from './domain/subnets.js';
import type { Accelerator, VmSettings } from './domain/virtual-machine.js';

export type NvidiaAttach = 'device-requests' | 'cdi';
export type GpuSource = { kind: 'nvidia'; attach: NvidiaAttach } | { kind: 'simulated'; count: number };

export interface AgentConfig {
  /** Holds the host's identity and the journal. */
  stateDir: string;
  /** The folder with the output of `scripts/build-guest-tools`. */
  guestTools: string;
  /** Path of Docker's socket. */
  dockerSocket: string;
  /** Path of Docker's pid file. */
  dockerPidFile: string;
  /** The name of the Docker runtime for renters' containers; null: Docker's default. */
  containerRuntime: string | null;
  name: string;
  region: string;
  /** The address at which renters reach this host; empty: the address of the default route. */
  publicAddress: string;
  /** Whether links to an instance use its own host name: INSTANCE.publicAddress. */
  namePerInstance: boolean;
  /** The host address that ports are published on. */
  bindAddress: string;
  /** The certificate of the guarded ports; null: plain HTTP. */
  tls: CertificateFiles | null;
  /** The socket of the access proxy; null: the agent starts the access proxy itself. */
  proxySocket: string | null;
  /** The socket behind which each connection is a pull relay; null: the agent starts them itself. */
  pullSocket: string | null;
  ports: PortRange;
  /** The address range for the networks of instances. */
  subnet: Subnet;
  /** How many networks of instances are made in advance. */
  readyNetworks: number;
  /** Name servers of instances. */
  resolvers: string[];
  /** The networks that instances can reach; null: no restriction. */
  egress: EgressPolicy | null;
  gpus: GpuSource;
  vms: VmSettings;
  localImages: LocalImages;
  /** The limits of one pull. */
  pulls: PullLimits;
  /** The most that all renters' disks take together, in GB; null: nine tenths of the file system. */
  diskGb: number | null;
  /** Whether the agent upgrades itself to signed releases when the control plane asks for it. */
  upgrades: 'off' | 'signed';
  /** The address for Prometheus; null: metrics only on the agent's own socket. */
  metrics: { host: string; port: number } | null;
  logLevel: string;
  /** Null: chosen by where the log goes. */
  logFormat: LogFormat | null;
}

const DEFAULTS = {
  GPURENT_AGENT_STATE_DIR: '/var/lib/gpurent-agent',
  GPURENT_AGENT_GUEST_TOOLS: '/usr/lib/gpurent/guest-tools',
  GPURENT_AGENT_DOCKER_SOCKET: '',
  GPURENT_AGENT_DOCKER_PID_FILE: '',
  GPURENT_AGENT_CONTAINER_RUNTIME: '',
  GPURENT_AGENT_NAME: '',
  GPURENT_AGENT_REGION: 'default',
  GPURENT_AGENT_PUBLIC_ADDRESS: '',
  GPURENT_AGENT_NAME_PER_INSTANCE: 'off',
  GPURENT_AGENT_BIND_ADDRESS: '0.0.0.0',
  GPURENT_AGENT_TLS_CERTIFICATE_FILE: '',
  GPURENT_AGENT_TLS_KEY_FILE: '',
  GPURENT_AGENT_PROXY_SOCKET: '',
  GPURENT_AGENT_PULL_SOCKET: '',
  GPURENT_AGENT_PORTS: '20000-20999',
  GPURENT_AGENT_SUBNET: '10.213.0.0/16',
  GPURENT_AGENT_READY_NETWORKS: '2',
  GPURENT_AGENT_DNS: '1.1.1.1,8.8.8.8',
  GPURENT_AGENT_EGRESS_GUARD: 'on',
  GPURENT_AGENT_EGRESS_ALLOW: '',
  GPURENT_AGENT_EGRESS_MBIT: '',
  GPURENT_AGENT_GPUS: 'nvidia',
  GPURENT_AGENT_GPU_ATTACH: 'device-requests',
  GPURENT_AGENT_VMS: 'kvm',
  GPURENT_AGENT_VM_RUNNER: 'localhost/gpurent/vm-runner:1',
  GPURENT_AGENT_VM_STOP_SECONDS: '90',
  GPURENT_AGENT_DISK_GB: '',
  GPURENT_AGENT_LOCAL_IMAGES: 'any',
  GPURENT_AGENT_PULL_MINUTES: '60',
  GPURENT_AGENT_PULL_MIB_PER_SECOND: '1',
  GPURENT_AGENT_IMAGE_GB: '200',
  GPURENT_AGENT_UPGRADES: 'off',
  GPURENT_AGENT_METRICS_ADDRESS: '',
  GPURENT_AGENT_LOG_LEVEL: 'info',
  GPURENT_AGENT_LOG_FORMAT: '',
  GPURENT_AGENT_CONFIG: '',
};
type Setting = keyof typeof DEFAULTS;
const GB = 1_000_000_000;
type ReadSettings = Settings<Setting>;

/** Parses the settings; command line options override them. Throws SetupError that names the setting and its valid values. */
export function parseConfig(
  environment: Record<string, string | undefined>,
  options: { gpus?: string } = {},
): AgentConfig {
  const unknown = Object.keys(environment).filter((name) => name !== 'DOCKER_HOST' && !(name in DEFAULTS));
  if (unknown.length > 0) throw new SetupError(unknownSettings(unknown, 'the agent'));
  const settings = new Settings(environment, DEFAULTS);
  const dockerSocket = parseSocket(
    settings.text('GPURENT_AGENT_DOCKER_SOCKET') || environment['DOCKER_HOST'] || 'unix:///var/run/docker.sock',
  );
  return {
    stateDir: settings.text('GPURENT_AGENT_STATE_DIR'),
    guestTools: resolve(settings.text('GPURENT_AGENT_GUEST_TOOLS')),
    dockerSocket,
    dockerPidFile: settings.text('GPURENT_AGENT_DOCKER_PID_FILE') || dockerSocket.replace(/(\.sock)?$/, '.pid'),
    containerRuntime: parseRuntime(settings),
    name: settings.text('GPURENT_AGENT_NAME') || hostname(),
    region: settings.text('GPURENT_AGENT_REGION'),
    publicAddress: settings.text('GPURENT_AGENT_PUBLIC_ADDRESS'),
    namePerInstance: parseNames(settings),
    bindAddress: parseAddress(settings),
    tls: certificateFiles(
      'GPURENT_AGENT_TLS',
      settings.text('GPURENT_AGENT_TLS_CERTIFICATE_FILE'),
      settings.text('GPURENT_AGENT_TLS_KEY_FILE'),
    ),
    proxySocket: settings.text('GPURENT_AGENT_PROXY_SOCKET') || null,
    pullSocket: settings.text('GPURENT_AGENT_PULL_SOCKET') || null,
    ports: parsePorts(settings),
    subnet: parsePool(settings),
    readyNetworks: settings.whole('GPURENT_AGENT_READY_NETWORKS', { least: 0, most: 9, such: 2 }),
    ...parseReach(settings),
    gpus: parseGpus(settings, options.gpus ?? settings.text('GPURENT_AGENT_GPUS')),
    vms: {
      accelerator: parseAccelerator(settings),
      runner: settings.text('GPURENT_AGENT_VM_RUNNER'),
      stopSeconds: settings.whole('GPURENT_AGENT_VM_STOP_SECONDS', { most: 999, such: 90 }),
    },
    localImages: parseLocalImages(settings),
    pulls: {
      longestMs: settings.whole('GPURENT_AGENT_PULL_MINUTES', { most: 99_999, such: 60 }) * MINUTE_MS,
      leastBytesPerSecond: settings.whole('GPURENT_AGENT_PULL_MIB_PER_SECOND', { most: 99_999, such: 1 }) * MIB,
      mostBytes: settings.whole('GPURENT_AGENT_IMAGE_GB', { most: 99_999, such: 200 }) * GB,
    },
    diskGb: wholeOrNull(settings, 'GPURENT_AGENT_DISK_GB', { most: 9_999_999, such: 2000 }),
    upgrades: settings.oneOf('GPURENT_AGENT_UPGRADES', ['off', 'signed']),
    metrics: parseMetrics(settings),
    logLevel: settings.oneOf('GPURENT_AGENT_LOG_LEVEL', LOG_LEVELS),
    logFormat: parseLogFormat('GPURENT_AGENT_LOG_FORMAT', settings.text('GPURENT_AGENT_LOG_FORMAT')),
  };
}

export function journalFile(config: AgentConfig): string {
  return join(config.stateDir, 'journal.db');
}

/** Returns the folder that records under which data root of Docker each instance was created. */
export function dataRootFolder(config: AgentConfig): string {
  return join(config.stateDir, 'data-roots');
}

/** Returns the socket on which the agent answers its own command line. */
export function agentSocket(config: AgentConfig): string {
  return join(config.stateDir, 'agent.sock');
}

function parseMetrics(settings: ReadSettings): AgentConfig['metrics'] {
  const value = settings.text('GPURENT_AGENT_METRICS_ADDRESS');
  if (value === '') return null;
  const [, host = '', port = ''] = /^(127\.[\d.]+|\[::1\]):(\d{1,5})$/.exec(value) ?? [];
  if (host === '' || Number(port) > 65_535)
    settings.refuse('GPURENT_AGENT_METRICS_ADDRESS', 'give an address on loopback, such as 127.0.0.1:9464');
  return { host: host.replace(/[[\]]/g, ''), port: Number(port) };
}

function parseSocket(value: string): string {
  const path = value.replace(/^unix:\/\//, '');
  if (path.startsWith('/')) return path;
  throw new SetupError(
    `the address of Docker is "${value}", but the agent uses only a local socket: set GPURENT_AGENT_DOCKER_SOCKET to unix:///path`,
  );
}

function parseAddress(settings: ReadSettings): string {
  const value = settings.text('GPURENT_AGENT_BIND_ADDRESS');
  return isIP(value) > 0 ? value : settings.refuse('GPURENT_AGENT_BIND_ADDRESS', 'give an IP address of this host');
}

function parsePorts(settings: ReadSettings): PortRange {
  const match = /^(\d+)-(\d+)$/.exec(settings.text('GPURENT_AGENT_PORTS'));
  const [first, last] = [Number(match?.[1]), Number(match?.[2])];
  if (first >= 1024 && last <= 65_535 && first <= last) return { first, last };
  return settings.refuse('GPURENT_AGENT_PORTS', 'give FIRST-LAST within 1024-65535, such as 20000-20999');
}

function parsePool(settings: ReadSettings): Subnet {
  const pool = parseSubnet(settings.text('GPURENT_AGENT_SUBNET'));
  if (pool && pool.prefix >= 8 && pool.prefix <= 24) return pool;
  return settings.refuse(
    'GPURENT_AGENT_SUBNET',
    'give an IPv4 network of /8 to /24 that this host does not use, such as 10.213.0.0/16',
  );
}

/** Reads what instances can reach: their name servers, and the networks. */
function parseReach(settings: ReadSettings): Pick<AgentConfig, 'resolvers' | 'egress'> {
  const servers = 'give IPv4 addresses of name servers, such as 1.1.1.1,8.8.8.8';
  const resolvers = settings.list('GPURENT_AGENT_DNS', (address) => isIP(address) === 4, servers);
  if (resolvers.length === 0) settings.refuse('GPURENT_AGENT_DNS', servers);
  const allowed = settings.list(
    'GPURENT_AGENT_EGRESS_ALLOW',
    parseSubnet,
    'give IPv4 networks, such as 192.168.7.0/24',
  );
  const instances = settings.text('GPURENT_AGENT_SUBNET');
  const mostMbit = wholeOrNull(settings, 'GPURENT_AGENT_EGRESS_MBIT', { most: 99_999, such: 900 });
  const guard = settings.oneOf(
    'GPURENT_AGENT_EGRESS_GUARD',
    ['on', 'off'],
    'give "on", or "off" if something else restricts what renters can reach',
  );
  return { resolvers, egress: guard === 'on' ? { resolvers, instances, mostMbit, allowed } : null };
}

function parseLocalImages(settings: ReadSettings): LocalImages {
  const value = settings.text('GPURENT_AGENT_LOCAL_IMAGES');
  if (value === 'any') return 'any';
  if (value === 'none') return [];
  const advice = 'give image names as in templates, "any" or "none"';
  return settings.list('GPURENT_AGENT_LOCAL_IMAGES', parseImageReference, advice);
}

function parseGpus(settings: ReadSettings, value: string): GpuSource {
  const attach = settings.oneOf(
    'GPURENT_AGENT_GPU_ATTACH',
    ['device-requests', 'cdi'],
    'give "device-requests" or "cdi"',
  );
  if (value === 'nvidia') return { kind: 'nvidia', attach };
  const count = Number(/^simulated:(\d{1,2})$/.exec(value)?.[1] ?? 0);
  if (count < 1) throw new SetupError(`GPUs are "${value}"; give "nvidia", or "simulated:8" for tests`);
  return { kind: 'simulated', count };
}

function parseAccelerator(settings: ReadSettings): Accelerator | null {
  const value = settings.oneOf(
    'GPURENT_AGENT_VMS',
    ['kvm', 'tcg', 'off'],
    'give "kvm", "off", or, for trying out, "tcg", which needs nothing of the processor and is slow',
  );
  return value === 'off' ? null : value;
}

function parseNames(settings: ReadSettings): boolean {
  const address = settings.text('GPURENT_AGENT_PUBLIC_ADDRESS');
  const value = settings.text('GPURENT_AGENT_NAME_PER_INSTANCE');
  if (value === 'off') return false;
  if (value === 'on' && address !== '' && isIP(address) === 0) return true;
  return settings.refuse(
    'GPURENT_AGENT_NAME_PER_INSTANCE',
    'give "off", or "on" with a host name in GPURENT_AGENT_PUBLIC_ADDRESS whose subdomains all resolve to this host',
  );
}

function parseRuntime(settings: ReadSettings): string | null {
  const value = settings.text('GPURENT_AGENT_CONTAINER_RUNTIME');
  if (/^[A-Za-z0-9._-]{0,64}$/.test(value)) return value || null;
  return settings.refuse(
    'GPURENT_AGENT_CONTAINER_RUNTIME',
    'give the name of a runtime that Docker knows, such as crun',
  );
}

function wholeOrNull(settings: ReadSettings, name: Setting, range: { most: number; such: number }): number | null {
  return settings.text(name) === '' ? null : settings.whole(name, range);
}
