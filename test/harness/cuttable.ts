import { connect, createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

/** A TCP relay to a server, whose connections a test can cut. */
export class Cuttable {
  private readonly open = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async to(url: string): Promise<Cuttable> {
    const { hostname, port } = new URL(url);
    const server = createServer((visitor) => {
      const target = connect(Number(port), hostname);
      visitor.pipe(target).pipe(visitor);
      for (const [one, other] of [
        [visitor, target],
        [target, visitor],
      ] as const) {
        relay.open.add(one);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          relay.open.delete(one);
          other.destroy();
        });
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const relay = new Cuttable(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return relay;
  }

  get connections(): number {
    return this.open.size / 2;
  }

  /** Ends every connection at once, as a network does that fails. */
  cut(): void {
    for (const socket of this.open) socket.resetAndDestroy();
  }

  close(): void {
    this.cut();
    this.server.close();
  }
}
