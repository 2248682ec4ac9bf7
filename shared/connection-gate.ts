import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Clock, Timer } from './clock.js';

/** A peer must authenticate within this time. */
const PROOF_MS = 20_000;
/** If no place is free, a peer that has not authenticated within this time loses its place to another. */
const PATIENCE_MS = 3_000;
/** More than a peer needs to authenticate: a handshake, headers and a short message. */
const UNPROVEN_BYTES = 256 * 1024;
const LOOK_MS = 100;

export interface GateLimits {
  /** Connections that are served before their peers have authenticated. */
  unproven: number;
  unprovenOfOneAddress: number;
  /** Connections that wait, unread, for a place among them. */
  waiting: number;
  waitingOfOneAddress: number;
  /** Connections of peers that have authenticated. */
  proven: number;
  /** Connections that get a place in one turn of the event loop; the others wait for the next. Without it there is no limit. */
  perTurn?: number;
  /** A peer that has waited for longer has given up, and its handshake would be for nothing. Without it there is no limit. */
  waitMs?: number;
}

interface Visitor {
  socket: Socket;
  /** `address:port` */
  peer: string;
  address: string;
  /** When it came, or got its place, in monotonic milliseconds. */
  since: number;
}

/**
 * Listens, and limits the cost of peers that have not authenticated: how many it serves at once, in all and per address, for how
 * long, and with how many bytes. Other connections wait unread. Addresses take turns, and within an address the newest connection
 * comes first, so that an honest peer gets a place despite attackers who only hold connections.
 */
export class ConnectionGate {
  /** In the order in which they got their places. */
  private readonly unproven = new Map<string, Visitor>();
  private readonly unprovenOf = new Map<string, number>();
  /** By address, in the order of turns; within an address, newest last. */
  private readonly waiting = new Map<string, Visitor[]>();
  private waitingCount = 0;
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;
  private timer: Timer | undefined;
  private closed = false;
  /** Connections that got a place in this turn. */
  private admitted = 0;

  /** `letIn` is called with each connection that gets a place; `defer` runs a function in the next turn. */
  constructor(
    private readonly clock: Clock,
    private readonly letIn: (socket: Socket) => void,
    private readonly limits: GateLimits,
    private readonly defer: (run: () => void) => void = (run) => void setImmediate(run),
  ) {}

  /** Returns the number of connections, including waiting ones. */
  get connections(): number {
    return this.sockets.size;
  }

  /** Binds an address. Returns the bound port. */
  async listen(host: string, port: number): Promise<number> {
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.take(socket));
    this.server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, resolve);
    });
    // The error of one connection must not end the others.
    server.on('error', () => undefined);
    return (server.address() as AddressInfo).port;
  }

  /** Takes a connection that this gate or another listener has accepted. */
  take(socket: Socket): void {
    if (this.closed || socket.destroyed) return void socket.destroy();
    const { remoteAddress: address = '', remotePort } = socket;
    const visitor = { socket, address, peer: `${address}:${remotePort}`, since: this.clock.monotonic() };
    this.sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.gone(visitor));
    const others = this.waiting.get(address) ?? [];
    this.waiting.set(address, others);
    others.push(visitor);
    this.waitingCount++;
    // The oldest makes room: it has waited longest without success.
    if (this.waitingCount > this.limits.waiting || others.length > this.limits.waitingOfOneAddress)
      others[0]?.socket.destroy();
    this.fill();
  }

  /** Records that the peer at `address:port` has authenticated. From now on other code limits its connection. */
  prove(peer: string): void {
    const visitor = this.unproven.get(peer);
    if (!visitor) return;
    const proven = this.sockets.size - this.unproven.size - this.waitingCount;
    if (proven >= this.limits.proven) return void visitor.socket.destroy();
    this.leave(visitor);
    this.fill();
  }

  /** Takes no more connections, and ends those of peers that have not authenticated. */
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

  /** Gives all free places to waiting connections. */
  private fill(): void {
    for (let admitted = true; admitted;) {
      admitted = false;
      if (this.waitingCount === 0 || this.admitted >= (this.limits.perTurn ?? Infinity)) return;
      if (this.unproven.size >= this.limits.unproven && !this.evictOldest()) return;
      for (const [address, visitors] of this.waiting) {
        if ((this.unprovenOf.get(address) ?? 0) >= this.limits.unprovenOfOneAddress && !this.evictOldest(address))
          continue;
        const visitor = this.takeOut(address, visitors, visitors.length - 1);
        if (visitor && this.clock.monotonic() - visitor.since > (this.limits.waitMs ?? Infinity))
          visitor.socket.destroy();
        // A destroyed one has just made room for others; its close event follows.
        if (visitor && !visitor.socket.destroyed) this.admit(visitor);
        admitted = true;
        break;
      }
    }
  }

  /** Removes a waiting connection. The others of its address get their turn after all other addresses. */
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
    if (this.admitted++ === 0) this.defer(() => this.nextTurn());
    this.letIn(visitor.socket);
    visitor.socket.resume();
    this.timer ??= this.clock.schedule(LOOK_MS, () => this.look());
  }

  private nextTurn(): void {
    this.admitted = 0;
    if (!this.closed) this.fill();
  }

  /** Ends the oldest connection with a place for at least PATIENCE_MS, of one address or of all. Returns whether it found one. */
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
