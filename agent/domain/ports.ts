import type { Port } from '../../shared/gen/gpurent/agent/v1/agent.js';

/** A range of ports, both ends included. */
export interface PortRange {
  first: number;
  last: number;
}

/** Returns the ports of a range that are not in `used`, each once, beginning `offset` ports into it. */
export function candidatePorts(range: PortRange, used: ReadonlySet<number>, offset: number): number[] {
  const size = range.last - range.first + 1;
  return Array.from({ length: size }, (_, i) => range.first + ((offset + i) % size)).filter((port) => !used.has(port));
}

export interface PublishedPort {
  /** The port in the container. */
  port: number;
  protocol: 'tcp' | 'udp';
  /** The port on the host, the same for the life of the workload. */
  hostPort: number;
  /** Whether the access proxy serves the host port, instead of Docker. */
  guarded: boolean;
  /** Which URL of the instance points to this port. */
  link: 'jupyter' | 'open' | null;
}

/**
 * Returns the published ports of a workload with their host ports, in order. A port is guarded unless its `guard` is `none` or
 * `bearer`. A UDP port cannot be guarded, so a guarded one is not published.
 */
export function publishPorts(ports: readonly Port[], hostPorts: readonly number[]): PublishedPort[] {
  const opened = ports.find(({ openButton }) => openButton);
  return publishable(ports).map((port, index) => ({
    port: port.port,
    protocol: port.protocol === 'udp' ? 'udp' : 'tcp',
    hostPort: hostPorts[index] ?? 0,
    guarded: isGuarded(port),
    link: port.jupyter ? 'jupyter' : port === opened ? 'open' : null,
  }));
}

/** Returns the ports that can be published: all except guarded UDP ports. */
export function publishable(ports: readonly Port[]): Port[] {
  return ports.filter((port) => port.protocol !== 'udp' || !isGuarded(port));
}

function isGuarded({ guard }: Port): boolean {
  return guard !== 'none' && guard !== 'bearer';
}

/** Returns the environment variables that tell a workload its public address and ports. */
export function addressesOf(publicAddress: string, ports: readonly PublishedPort[]): { key: string; value: string }[] {
  const named = ports.map(({ protocol, port, hostPort }) => ({
    key: `PUBLIC_${protocol.toUpperCase()}_PORT_${port}`,
    value: String(hostPort),
  }));
  return [{ key: 'PUBLIC_ADDRESS', value: publicAddress }, ...named];
}
