import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isForbidden } from '../../../shared/network/forbidden-networks.js';
import { networkOf } from '../../domain/network.js';

export interface ConnectionLimits {
  ofOneNetwork: number;
  inAll: number;
}

/**
 * With those that hosts and strangers can hold at the gateway, they stay below the number of open files that the service may have.
 * People in one network can share an address, and each of their browsers has a few connections.
 */
export const CONNECTION_LIMITS: ConnectionLimits = { ofOneNetwork: 1_024, inAll: 16_384 };

interface Visitor {
  socket: Socket;
  /** `address:port` */
  peer: string;
  network: string;
  /** How many of its requests are not answered yet. */
  requests: number;
}

interface Network {
  /** By their peers; of those without a request, the one that has been so for longest comes first. */
  visitors: Map<string, Visitor>;
  /** How many of them have a request. */
  busy: number;
}

/**
 * Bounds the connections to a server, of one network and in all. One too many takes the place of the connection that has waited for
 * longest without a request: so nobody who only holds connections keeps anybody out. In all, it is one of the network with the most of
 * those. A connection with a request under way goes on; where each has one, the newest is ended. A reverse proxy has the connections of
 * everybody, so `isProxy` says of which addresses the first bound is not for: of those that are not on the Internet.
 *
 * Strangers may read pages, files and the document for as long as they like: unlike at the gateway, there is nothing by which a
 * connection proves itself.
 */
export function boundConnections(
  server: Server,
  limits: ConnectionLimits = CONNECTION_LIMITS,
  isProxy: (address: string) => boolean = (address) => isForbidden(address),
): void {
  const visitors = new Visitors(limits);
  // After the server's own listener: it must know a connection that is ended at once.
  server.on('connection', (socket: Socket) => visitors.take(socket, isProxy(socket.remoteAddress ?? '')));
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const end = visitors.begin(peerOf(socket));
    if (end) response.once('close', end);
  });
}

class Visitors {
  private readonly networks = new Map<string, Network>();
  private readonly byPeer = new Map<string, Visitor>();

  constructor(private readonly limits: ConnectionLimits) {}

  /** Takes a connection, and ends another one, or this one, if it is one too many. */
  take(socket: Socket, isOfProxy: boolean): void {
    if (socket.destroyed) return;
    const visitor = { socket, peer: peerOf(socket), network: networkOf(socket.remoteAddress ?? ''), requests: 0 };
    const own = this.networks.get(visitor.network) ?? { visitors: new Map<string, Visitor>(), busy: 0 };
    own.visitors.set(visitor.peer, visitor);
    this.networks.set(visitor.network, own);
    this.byPeer.set(visitor.peer, visitor);
    socket.once('close', () => this.forget(visitor));
    if (!isOfProxy && own.visitors.size > this.limits.ofOneNetwork) this.end(idleOf(own) ?? visitor);
    if (this.byPeer.size > this.limits.inAll) this.end(this.idleOfAll() ?? visitor);
  }

  /** Notes that a request has come. Returns the function to call once it is answered; undefined: the connection is not known. */
  begin(peer: string): (() => void) | undefined {
    const visitor = this.byPeer.get(peer);
    if (!visitor) return undefined;
    this.count(visitor, 1);
    return () => {
      this.count(visitor, -1);
      const own = this.networks.get(visitor.network);
      // It is the last one that had a request.
      if (own?.visitors.get(peer) === visitor && own.visitors.delete(peer)) own.visitors.set(peer, visitor);
    };
  }

  /** Counts a request that has begun, or ended. */
  private count(visitor: Visitor, change: 1 | -1): void {
    const wasBusy = visitor.requests > 0;
    visitor.requests += change;
    const own = this.networks.get(visitor.network);
    if (own?.visitors.get(visitor.peer) === visitor && visitor.requests > 0 !== wasBusy) own.busy += change;
  }

  private end(visitor: Visitor): void {
    this.forget(visitor);
    visitor.socket.destroy();
  }

  private forget(visitor: Visitor): void {
    const { peer, network } = visitor;
    if (this.byPeer.get(peer) !== visitor) return;
    this.byPeer.delete(peer);
    const own = this.networks.get(network);
    if (!own?.visitors.delete(peer)) return;
    if (visitor.requests > 0) own.busy -= 1;
    if (own.visitors.size === 0) this.networks.delete(network);
  }

  /** Returns a visitor without a request, of the network with the most of these. */
  private idleOfAll(): Visitor | undefined {
    let most: Network | undefined;
    for (const network of this.networks.values()) if (idleIn(network) > (most ? idleIn(most) : 0)) most = network;
    return most && idleOf(most);
  }
}

function idleIn({ visitors, busy }: Network): number {
  return visitors.size - busy;
}

function idleOf({ visitors }: Network): Visitor | undefined {
  for (const visitor of visitors.values()) if (visitor.requests === 0) return visitor;
  return undefined;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
