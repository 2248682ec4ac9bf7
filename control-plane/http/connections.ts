import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isLoopback } from '../../shared/addresses.js';
import { networkOf } from '../domain/network.js';

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

/** The visitors of a network; of those without a request, the one that has been so for longest comes first. */
type Network = Map<string, Visitor>;

/**
 * Bounds the connections to a server, of one network and in all. One too many takes the place of the connection that has waited for
 * longest without a request: so nobody who only holds connections keeps anybody out. In all, it is one of the network with the most. A
 * connection with a request under way goes on; where each has one, the newest is ended. A reverse proxy on this machine has the
 * connections of everybody, so `isProxy` says of which addresses the first bound is not for.
 *
 * Strangers may read pages, files and the document for as long as they like: unlike at the gateway, there is nothing by which a
 * connection proves itself.
 */
export function boundConnections(
  server: Server,
  limits: ConnectionLimits = CONNECTION_LIMITS,
  isProxy: (address: string) => boolean = isOfThisMachine,
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
    const own = this.networks.get(visitor.network) ?? new Map<string, Visitor>();
    this.networks.set(visitor.network, own.set(visitor.peer, visitor));
    this.byPeer.set(visitor.peer, visitor);
    socket.once('close', () => this.forget(visitor));
    if (!isOfProxy && own.size > this.limits.ofOneNetwork) this.end(idleOf(own) ?? visitor);
    if (this.byPeer.size > this.limits.inAll) this.end(idleOf(this.largest()) ?? visitor);
  }

  /** Notes that a request has come. Returns the function to call once it is answered; undefined: the connection is not known. */
  begin(peer: string): (() => void) | undefined {
    const visitor = this.byPeer.get(peer);
    if (!visitor) return undefined;
    visitor.requests += 1;
    return () => {
      visitor.requests -= 1;
      const own = this.networks.get(visitor.network);
      // It is the last one that had a request.
      if (own?.get(peer) === visitor && own.delete(peer)) own.set(peer, visitor);
    };
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
    own?.delete(peer);
    if (own?.size === 0) this.networks.delete(network);
  }

  private largest(): Network {
    let largest: Network = new Map<string, Visitor>();
    for (const network of this.networks.values()) if (network.size > largest.size) largest = network;
    return largest;
  }
}

function idleOf(network: Network): Visitor | undefined {
  for (const visitor of network.values()) if (visitor.requests === 0) return visitor;
  return undefined;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}

function isOfThisMachine(address: string): boolean {
  return isLoopback(address) || isLoopback(networkOf(address));
}
