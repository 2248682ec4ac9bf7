import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { MIB } from '../shared/bytes.js';
import { SetupError } from '../shared/coded-error.js';
import { parseImageReference } from '../shared/image-reference.js';
import { parseLogFormat, type LogFormat } from '../shared/logger.js';
import { unknownSettings } from '../shared/settings-file.js';
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
  GPURENT_AGENT_METRICS_ADDRESS: '',
  GPURENT_AGENT_LOG_LEVEL: 'info',
  GPURENT_AGENT_LOG_FORMAT: '',
  GPURENT_AGENT_CONFIG: '',
};
type Setting = keyof typeof DEFAULTS;
const GB = 1_000_000_000;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** Parses the settings; command line options override them. Throws SetupError that names the setting and its valid values. */
export function parseConfig(
  environment: Record<string, string | undefined>,
  options: { gpus?: string } = {},
): AgentConfig {
  const unknown = Object.keys(environment).filter((name) => name !== 'DOCKER_HOST' && !(name in DEFAULTS));
  if (unknown.length > 0) throw new SetupError(unknownSettings(unknown, 'the agent'));
  const get = (name: Setting) => environment[name] || DEFAULTS[name];
  const logLevel = get('GPURENT_AGENT_LOG_LEVEL');
  if (!LOG_LEVELS.includes(logLevel)) {
    throw new SetupError(`GPURENT_AGENT_LOG_LEVEL is "${logLevel}"; give one of ${LOG_LEVELS.join(', ')}`);
  }
  const dockerSocket = parseSocket(
    get('GPURENT_AGENT_DOCKER_SOCKET') || environment['DOCKER_HOST'] || 'unix:///var/run/docker.sock',
  );
  const resolvers = parseResolvers(get('GPURENT_AGENT_DNS'));
  return {
    stateDir: get('GPURENT_AGENT_STATE_DIR'),
    guestTools: resolve(get('GPURENT_AGENT_GUEST_TOOLS')),
    dockerSocket,
    dockerPidFile: get('GPURENT_AGENT_DOCKER_PID_FILE') || dockerSocket.replace(/(\.sock)?$/, '.pid'),
    containerRuntime: parseRuntime(get('GPURENT_AGENT_CONTAINER_RUNTIME')),
    name: get('GPURENT_AGENT_NAME') || hostname(),
    region: get('GPURENT_AGENT_REGION'),
    publicAddress: get('GPURENT_AGENT_PUBLIC_ADDRESS'),
    namePerInstance: parseNames(get('GPURENT_AGENT_NAME_PER_INSTANCE'), get('GPURENT_AGENT_PUBLIC_ADDRESS')),
    bindAddress: parseAddress(get('GPURENT_AGENT_BIND_ADDRESS')),
    tls: certificateFiles(
      'GPURENT_AGENT_TLS',
      get('GPURENT_AGENT_TLS_CERTIFICATE_FILE'),
      get('GPURENT_AGENT_TLS_KEY_FILE'),
    ),
    proxySocket: get('GPURENT_AGENT_PROXY_SOCKET') || null,
    pullSocket: get('GPURENT_AGENT_PULL_SOCKET') || null,
    ports: parsePorts(get('GPURENT_AGENT_PORTS')),
    subnet: parsePool(get('GPURENT_AGENT_SUBNET')),
    readyNetworks: parseReadyNetworks(get('GPURENT_AGENT_READY_NETWORKS')),
    resolvers,
    egress: parseEgress(get('GPURENT_AGENT_EGRESS_GUARD'), get('GPURENT_AGENT_EGRESS_ALLOW'), {
      resolvers,
      instances: get('GPURENT_AGENT_SUBNET'),
      mostMbit: parseMbit(get('GPURENT_AGENT_EGRESS_MBIT')),
    }),
    gpus: parseGpus(options.gpus ?? get('GPURENT_AGENT_GPUS'), get('GPURENT_AGENT_GPU_ATTACH')),
    vms: {
      accelerator: parseAccelerator(get('GPURENT_AGENT_VMS')),
      runner: get('GPURENT_AGENT_VM_RUNNER'),
      stopSeconds: parseStopSeconds(get('GPURENT_AGENT_VM_STOP_SECONDS')),
    },
    localImages: parseLocalImages(get('GPURENT_AGENT_LOCAL_IMAGES')),
    pulls: {
      longestMs: parseWhole('GPURENT_AGENT_PULL_MINUTES', get('GPURENT_AGENT_PULL_MINUTES'), 60) * MINUTE_MS,
      leastBytesPerSecond:
        parseWhole('GPURENT_AGENT_PULL_MIB_PER_SECOND', get('GPURENT_AGENT_PULL_MIB_PER_SECOND'), 1) * MIB,
      mostBytes: parseWhole('GPURENT_AGENT_IMAGE_GB', get('GPURENT_AGENT_IMAGE_GB'), 200) * GB,
    },
    diskGb: parseDisk(get('GPURENT_AGENT_DISK_GB')),
    metrics: parseMetrics(get('GPURENT_AGENT_METRICS_ADDRESS')),
    logLevel,
    logFormat: parseLogFormat('GPURENT_AGENT_LOG_FORMAT', get('GPURENT_AGENT_LOG_FORMAT')),
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

function parseMetrics(value: string): AgentConfig['metrics'] {
  if (value === '') return null;
  const [, host = '', port = ''] = /^(127\.[\d.]+|\[::1\]):(\d{1,5})$/.exec(value) ?? [];
  if (host === '' || Number(port) > 65_535) {
    throw new SetupError(
      `GPURENT_AGENT_METRICS_ADDRESS is "${value}"; give an address on loopback, such as 127.0.0.1:9464`,
    );
  }
  return { host: host.replace(/[[\]]/g, ''), port: Number(port) };
}

function parseSocket(value: string): string {
  const path = value.replace(/^unix:\/\//, '');
  if (!path.startsWith('/')) {
    throw new SetupError(
      `the address of Docker is "${value}", but the agent uses only a local socket: set GPURENT_AGENT_DOCKER_SOCKET to unix:///path`,
    );
  }
  return path;
}

function parseAddress(value: string): string {
  if (isIP(value) === 0)
    throw new SetupError(`GPURENT_AGENT_BIND_ADDRESS is "${value}"; give an IP address of this host`);
  return value;
}

function parsePorts(value: string): PortRange {
  const match = /^(\d+)-(\d+)$/.exec(value);
  const [first, last] = [Number(match?.[1]), Number(match?.[2])];
  if (!match || first < 1024 || last > 65535 || first > last) {
    throw new SetupError(`GPURENT_AGENT_PORTS is "${value}"; give FIRST-LAST within 1024-65535, such as 20000-20999`);
  }
  return { first, last };
}

function parsePool(value: string): Subnet {
  const pool = parseSubnet(value);
  if (!pool || pool.prefix < 8 || pool.prefix > 24) {
    throw new SetupError(
      `GPURENT_AGENT_SUBNET is "${value}"; give an IPv4 network of /8 to /24 that this host does not use, such as 10.213.0.0/16`,
    );
  }
  return pool;
}

function parseReadyNetworks(value: string): number {
  if (/^\d$/.test(value)) return Number(value);
  throw new SetupError(`GPURENT_AGENT_READY_NETWORKS is "${value}"; give a whole number from 0 to 9, such as 2`);
}

function parseResolvers(value: string): string[] {
  const addresses = listOf(value);
  if (addresses.length === 0 || addresses.some((address) => isIP(address) !== 4)) {
    throw new SetupError(
      `GPURENT_AGENT_DNS is "${value}"; give IPv4 addresses of name servers, such as 1.1.1.1,8.8.8.8`,
    );
  }
  return addresses;
}

function parseEgress(guard: string, allow: string, rest: Omit<EgressPolicy, 'allowed'>): EgressPolicy | null {
  if (guard !== 'on' && guard !== 'off') {
    throw new SetupError(
      `GPURENT_AGENT_EGRESS_GUARD is "${guard}"; give "on", or "off" if something else restricts what renters can reach`,
    );
  }
  const allowed = listOf(allow);
  const wrong = allowed.find((network) => !parseSubnet(network));
  if (wrong !== undefined) {
    throw new SetupError(`GPURENT_AGENT_EGRESS_ALLOW names "${wrong}"; give IPv4 networks, such as 192.168.7.0/24`);
  }
  return guard === 'on' ? { ...rest, allowed } : null;
}

function parseLocalImages(value: string): LocalImages {
  if (value === 'any') return 'any';
  const names = value === 'none' ? [] : listOf(value);
  const wrong = names.find((name) => !parseImageReference(name));
  if (wrong === undefined) return names;
  throw new SetupError(
    `GPURENT_AGENT_LOCAL_IMAGES names "${wrong}"; give image names as in templates, "any" or "none"`,
  );
}

function parseMbit(value: string): number | null {
  return value === '' ? null : parseWhole('GPURENT_AGENT_EGRESS_MBIT', value, 900);
}

function listOf(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
}

function parseGpus(value: string, attach: string): GpuSource {
  if (attach !== 'device-requests' && attach !== 'cdi') {
    throw new SetupError(`GPURENT_AGENT_GPU_ATTACH is "${attach}"; give "device-requests" or "cdi"`);
  }
  if (value === 'nvidia') return { kind: 'nvidia', attach };
  const count = Number(/^simulated:(\d{1,2})$/.exec(value)?.[1] ?? 0);
  if (count < 1) throw new SetupError(`GPUs are "${value}"; give "nvidia", or "simulated:8" for tests`);
  return { kind: 'simulated', count };
}

function parseAccelerator(value: string): Accelerator | null {
  if (value === 'kvm' || value === 'tcg') return value;
  if (value === 'off') return null;
  throw new SetupError(
    `GPURENT_AGENT_VMS is "${value}"; give "kvm", "off", or, for trying out, "tcg", which needs nothing of the processor and is slow`,
  );
}

function parseStopSeconds(value: string): number {
  if (/^[1-9]\d{0,2}$/.test(value)) return Number(value);
  throw new SetupError(`GPURENT_AGENT_VM_STOP_SECONDS is "${value}"; give 1 to 999`);
}

function parseNames(value: string, publicAddress: string): boolean {
  if (value === 'off') return false;
  if (value === 'on' && publicAddress !== '' && isIP(publicAddress) === 0) return true;
  throw new SetupError(
    `GPURENT_AGENT_NAME_PER_INSTANCE is "${value}"; give "off", or "on" with a host name in GPURENT_AGENT_PUBLIC_ADDRESS whose subdomains all resolve to this host`,
  );
}

function parseRuntime(value: string): string | null {
  if (value === '' || /^[A-Za-z0-9._-]{1,64}$/.test(value)) return value || null;
  throw new SetupError(
    `GPURENT_AGENT_CONTAINER_RUNTIME is "${value}"; give the name of a runtime that Docker knows, such as crun`,
  );
}

function parseWhole(name: Setting, value: string, example: number): number {
  if (/^[1-9]\d{0,4}$/.test(value)) return Number(value);
  throw new SetupError(`${name} is "${value}"; give a whole number from 1 to 99999, such as ${example}`);
}

function parseDisk(value: string): number | null {
  if (value === '') return null;
  if (!/^[1-9]\d{0,6}$/.test(value))
    throw new SetupError(`GPURENT_AGENT_DISK_GB is "${value}"; give whole GB, such as 2000`);
  return Number(value);
}
