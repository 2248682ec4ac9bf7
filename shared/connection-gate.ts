import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Clock, Timer } from './clock.js';

/** A peer proves who it is within this time. */
const PROOF_MS = 20_000;
/** Where places are short, a peer that has proven nothing by then loses its place to another. */
const PATIENCE_MS = 3_000;
/** More than a peer needs for that: a handshake, headers, and a short message. */
const UNPROVEN_BYTES = 256 * 1024;
const LOOK_MS = 100;

export interface GateLimits {
  /** Connections that are served though nothing is known of their peers. */
  unproven: number;
  unprovenOfOneAddress: number;
  /** Connections that wait, unread, for one of those places. */
  waiting: number;
  waitingOfOneAddress: number;
  /** Connections of peers that have proven themselves. */
  proven: number;
}

interface Visitor {
  socket: Socket;
  /** `address:port` */
  peer: string;
  address: string;
  /** When it was let in, in monotonic milliseconds. */
  since: number;
}

/**
 * Listens, and bounds what peers that have proven nothing can cost: how many are served at once, in all and of one
 * address, for how long, and with how many bytes. Whoever finds no place waits unread. Addresses take turns, and of one address
 * the newest comes first, so that an honest peer gets in past a crowd that only holds connections.
 */
export class ConnectionGate {
  /** In the order in which they were let in. */
  private readonly unproven = new Map<string, Visitor>();
  private readonly unprovenOf = new Map<string, number>();
  /** By address, in the order of their turns; of each, the newest last. */
  private readonly waiting = new Map<string, Visitor[]>();
  private waitingCount = 0;
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;
  private timer: Timer | undefined;
  private closed = false;

  /** `letIn` is given each connection that is to be served. */
  constructor(
    private readonly clock: Clock,
    private readonly letIn: (socket: Socket) => void,
    private readonly limits: GateLimits,
  ) {}

  /** How many connections there are, waiting ones included. */
  get connections(): number {
    return this.sockets.size;
  }

  /** Binds an address. Returns the port bound. */
  async listen(host: string, port: number): Promise<number> {
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.take(socket));
    this.server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, resolve);
    });
    // What one connection fails with ends that one alone.
    server.on('error', () => undefined);
    return (server.address() as AddressInfo).port;
  }

  /** Takes a connection that has been accepted, here or elsewhere. */
  take(socket: Socket): void {
    if (this.closed || socket.destroyed) return void socket.destroy();
    const { remoteAddress: address = '', remotePort } = socket;
    const visitor = { socket, address, peer: `${address}:${remotePort}`, since: 0 };
    this.sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.gone(visitor));
    const others = this.waiting.get(address) ?? [];
    this.waiting.set(address, others);
    others.push(visitor);
    this.waitingCount++;
    // The oldest makes room: it has waited in vain for longest.
    if (this.waitingCount > this.limits.waiting || others.length > this.limits.waitingOfOneAddress)
      others[0]?.socket.destroy();
    this.fill();
  }

  /** The peer at `address:port` has proven who it is: what its connection may do is bounded elsewhere from now on. */
  prove(peer: string): void {
    const visitor = this.unproven.get(peer);
    if (!visitor) return;
    const proven = this.sockets.size - this.unproven.size - this.waitingCount;
    if (proven >= this.limits.proven) return void visitor.socket.destroy();
    this.leave(visitor);
    this.fill();
  }

  /** Takes no more connections, and ends those whose peers have proven nothing. */
  close(): void {
    this.closed = true;
    this.timer?.cancel();
    this.server?.close();
    for (const { socket } of [...this.unproven.values(), ...[...this.waiting.values()].flat()]) socket.destroy();
  }

  /** Ends all connections. */
  destroy(): void {
    this.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private gone(visitor: Visitor): void {
    this.sockets.delete(visitor.socket);
    const others = this.waiting.get(visitor.address);
    const index = others?.indexOf(visitor) ?? -1;
    if (others && index >= 0) this.takeOut(visitor.address, others, index);
    if (this.unproven.get(visitor.peer) === visitor) this.leave(visitor);
    this.fill();
  }

  /** Lets in whoever there is a place for. */
  private fill(): void {
    for (let admitted = true; admitted;) {
      admitted = false;
      if (this.unproven.size >= this.limits.unproven && !this.evictOldest()) return;
      for (const [address, visitors] of this.waiting) {
        if ((this.unprovenOf.get(address) ?? 0) >= this.limits.unprovenOfOneAddress && !this.evictOldest(address))
          continue;
        const visitor = this.takeOut(address, visitors, visitors.length - 1);
        // One that has just made room for others is still to leave.
        if (visitor && !visitor.socket.destroyed) this.admit(visitor);
        admitted = true;
        break;
      }
    }
  }

  /** The others of the address have their turn after all other addresses. */
  private takeOut(address: string, visitors: Visitor[], index: number): Visitor | undefined {
    const [visitor] = visitors.splice(index, 1);
    this.waitingCount--;
    this.waiting.delete(address);
    if (visitors.length > 0) this.waiting.set(address, visitors);
    return visitor;
  }

  private admit(visitor: Visitor): void {
    visitor.since = this.clock.monotonic();
    this.unproven.set(visitor.peer, visitor);
    this.unprovenOf.set(visitor.address, (this.unprovenOf.get(visitor.address) ?? 0) + 1);
    this.letIn(visitor.socket);
    visitor.socket.resume();
    this.timer ??= this.clock.schedule(LOOK_MS, () => this.look());
  }

  /** Ends the oldest that has had time enough, of one address or of all. Returns whether there is one. */
  private evictOldest(address?: string): boolean {
    for (const visitor of this.unproven.values()) {
      if (this.clock.monotonic() - visitor.since < PATIENCE_MS) return false;
      if (address !== undefined && visitor.address !== address) continue;
      this.leave(visitor);
      visitor.socket.destroy();
      return true;
    }
    return false;
  }

  private leave({ peer, address }: Visitor): void {
    this.unproven.delete(peer);
    const left = (this.unprovenOf.get(address) ?? 0) - 1;
    if (left > 0) this.unprovenOf.set(address, left);
    else this.unprovenOf.delete(address);
  }

  private look(): void {
    this.timer = undefined;
    const now = this.clock.monotonic();
    for (const { socket, since } of this.unproven.values())
      if (now - since >= PROOF_MS || socket.bytesRead > UNPROVEN_BYTES) socket.destroy();
    this.fill();
    if (this.unproven.size > 0) this.timer = this.clock.schedule(LOOK_MS, () => this.look());
  }
}
