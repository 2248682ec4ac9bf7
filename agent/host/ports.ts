import { createHash } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { Failure } from '../domain/failure.js';
import { candidatePorts, type PortRange } from '../domain/ports.js';

/** Hands out ports of the host's allowed range; each is tried before it is given. */
export class PortAllocator {
  private readonly given = new Set<number>();

  /** `held` answers the ports that containers of this host have, running or not. */
  constructor(
    private readonly range: PortRange,
    private readonly bindAddress: string,
    private readonly held: () => Promise<number[]>,
  ) {}

  /** So many ports that nobody holds and nothing listens on; given until {@link release}. Throws Failure NO_FREE_PORT. */
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

  /** Throws Failure PORT_TAKEN when something listens on the port. */
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

/** An instance's port is not handed to the next instance at once: a client would meet a host key that it does not expect. */
function offsetOf(seed: string): number {
  return createHash('sha256').update(seed).digest().readUInt32BE(0);
}
