import { createHash } from 'node:crypto';
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

  /** A port that nobody holds and nothing listens on; given until {@link release}. Throws Failure NO_FREE_PORT. */
  async choose(seed: string, refused: ReadonlySet<number>): Promise<number> {
    const held = new Set([...(await this.held()), ...refused]);
    for (const port of candidatePorts(this.range, held, offsetOf(seed))) {
      if (this.given.has(port)) continue;
      this.given.add(port);
      if ((await this.listenError(port)) === undefined) return port;
      this.given.delete(port);
    }
    throw new Failure('NO_FREE_PORT', `no port of ${this.range.first}-${this.range.last} is free on this host`);
  }

  release(port: number): void {
    this.given.delete(port);
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

  private listenError(port: number): Promise<string | undefined> {
    return new Promise((resolve) => {
      const server = createServer();
      server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      server.listen({ host: this.bindAddress, port, exclusive: true }, () => server.close(() => resolve(undefined)));
    });
  }
}

/** An instance's port is not handed to the next instance at once: a client would meet a host key that it does not expect. */
function offsetOf(seed: string): number {
  return createHash('sha256').update(seed).digest().readUInt32BE(0);
}
