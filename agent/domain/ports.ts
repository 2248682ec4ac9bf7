import type { Port } from '../../shared/gen/gpurent/agent/v1/agent.js';

/** Inclusive. */
export interface PortRange {
  first: number;
  last: number;
}

/** The ports of a range that are not in `used`, each once, beginning `offset` ports into it. */
export function candidatePorts(range: PortRange, used: ReadonlySet<number>, offset: number): number[] {
  const size = range.last - range.first + 1;
  return Array.from({ length: size }, (_, i) => range.first + ((offset + i) % size)).filter((port) => !used.has(port));
}

export interface PublishedPort {
  /** In the container. */
  port: number;
  protocol: 'tcp' | 'udp';
  /** On the host, the same for the life of the workload. */
  hostPort: number;
  /** Whether the access proxy stands before it, instead of Docker publishing it. */
  guarded: boolean;
  /** Which link of the instance leads here. */
  link: 'jupyter' | 'open' | null;
}

/**
 * The ports of a workload with their host ports, in order. What is not known to guard itself is guarded. UDP cannot be guarded:
 * where that is asked for, it is not published.
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

/** Those that can be reached at all. */
export function publishable(ports: readonly Port[]): Port[] {
  return ports.filter((port) => port.protocol !== 'udp' || !isGuarded(port));
}

function isGuarded({ guard }: Port): boolean {
  return guard !== 'none' && guard !== 'bearer';
}

/** How a workload tells others where it is reached: for its environment. */
export function addressesOf(publicAddress: string, ports: readonly PublishedPort[]): { key: string; value: string }[] {
  const named = ports.map(({ protocol, port, hostPort }) => ({
    key: `PUBLIC_${protocol.toUpperCase()}_PORT_${port}`,
    value: String(hostPort),
  }));
  return [{ key: 'PUBLIC_ADDRESS', value: publicAddress }, ...named];
}
