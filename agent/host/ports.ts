import { createHash } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { Failure } from '../domain/failure.js';
import { candidatePorts, type PortRange } from '../domain/ports.js';

/** Allocates ports from the host's range; tries to listen on each before it allocates it. */
export class PortAllocator {
  private readonly given = new Set<number>();

  /** `held` returns the ports of this host's containers, running or not. */
  constructor(
    private readonly range: PortRange,
    private readonly bindAddress: string,
    private readonly held: () => Promise<number[]>,
  ) {}

  /** Allocates `count` ports that no container has and no process listens on, until {@link release}. Throws Failure NO_FREE_PORT. */
  async choose(count: number, seed: string, refused: ReadonlySet<number>): Promise<number[]> {
    const held = new Set([...(await this.held()), ...refused]);
    const chosen: number[] = [];
    for (const port of candidatePorts(this.range, held, offsetOf(seed))) {
      if (chosen.length === count) return chosen;
      if (this.given.has(port)) continue;
      this.given.add(port);
      if ((await this.listenError(port)) === undefined) chosen.push(port);
      else this.given.delete(port);
    }
    if (chosen.length === count) return chosen;
    this.release(chosen);
    throw new Failure('NO_FREE_PORT', `no port of ${this.range.first}-${this.range.last} is free on this host`);
  }

  release(ports: readonly number[]): void {
    for (const port of ports) this.given.delete(port);
  }

  /** Throws Failure PORT_TAKEN if a process listens on the port. */
  async check(port: number): Promise<void> {
    const error = await this.listenError(port);
    if (error)
      throw new Failure(
        'PORT_TAKEN',
        `port ${port} of this instance is used by another process on the host (${error})`,
      );
  }

  private async listenError(port: number): Promise<string | undefined> {
    return (await this.tcpError(port)) ?? (await this.udpError(port));
  }

  private tcpError(port: number): Promise<string | undefined> {
    return new Promise((resolve) => {
      const server = createServer();
      server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      server.listen({ host: this.bindAddress, port, exclusive: true }, () => server.close(() => resolve(undefined)));
    });
  }

  private udpError(port: number): Promise<string | undefined> {
    return new Promise((resolve) => {
      const socket = createSocket(this.bindAddress.includes(':') ? 'udp6' : 'udp4');
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      socket.bind({ address: this.bindAddress, port, exclusive: true }, () => socket.close(() => resolve(undefined)));
    });
  }
}

/**
 * Returns where in the range to begin for a seed. The next instance then rarely gets the port of the last one, at which SSH clients
 * would see an unexpected host key.
 */
function offsetOf(seed: string): number {
  return createHash('sha256').update(seed).digest().readUInt32BE(0);
}
