import type { KeyAndCertificate } from '../../shared/network/server-identity.js';
import type { PortGate } from './authorize.js';

/** A guarded port, and the address at which its workload listens. */
export interface GuardedPort extends PortGate {
  /** Address of the workload, as this host reaches it. */
  target: { host: string; port: number };
}

/** The guarded ports of one instance. */
export interface InstancePorts {
  instanceId: string;
  ports: GuardedPort[];
}

/** The complete state that the agent wants from the proxy; the agent sends it again whenever something changes. */
export interface ProxyState {
  /** Rises with each message of a connection; the reply repeats it. */
  revision: number;
  /**
   * Whether `instances` contains all instances of this host. Until it does, the proxy closes no port that is missing in
   * it.
   */
  isComplete: boolean;
  bindAddress: string;
  /** Key and certificate of the ports; null: the ports use plain HTTP. */
  identity: KeyAndCertificate | null;
  instances: InstancePorts[];
}

/** A port that could not be opened, and why. */
export interface PortFailure {
  hostPort: number;
  reason: string;
}

export interface ProxyReply {
  revision: number;
  failures: PortFailure[];
}

/** A message from the supervisor to a worker. A `connection` comes with its socket. */
export type WorkerOrder =
  | { kind: 'configure'; ports: GuardedPort[]; identity: KeyAndCertificate | null }
  | { kind: 'connection'; hostPort: number };

/** A message from a worker: it has received the socket of a connection, or it has had no connection for a while. */
export type WorkerWord = { kind: 'taken' } | { kind: 'idle' };
