import type { KeyAndCertificate } from '../../shared/server-identity.js';
import type { PortGate } from './authorize.js';

/** A guarded port, and where its workload listens. */
export interface GuardedPort extends PortGate {
  /** Of the workload, as this host reaches it. */
  target: { host: string; port: number };
}

/** The guarded ports of one instance. */
export interface InstancePorts {
  instanceId: string;
  ports: GuardedPort[];
}

/** What the agent wants of the proxy: all of it, told again whenever something changes. */
export interface ProxyState {
  /** Rises with each message of a connection; the reply carries it. */
  revision: number;
  /** Whether `instances` has all of this host. Until it has, the proxy closes no port that is missing in it. */
  isComplete: boolean;
  bindAddress: string;
  /** What visitors are shown by TLS; null: the ports speak plain HTTP. */
  identity: KeyAndCertificate | null;
  instances: InstancePorts[];
}

/** Which ports could not be opened, and why. */
export interface PortFailure {
  hostPort: number;
  reason: string;
}

export interface ProxyReply {
  revision: number;
  failures: PortFailure[];
}

/** From the supervisor to a worker. A `connection` comes with its socket. */
export type WorkerOrder =
  | { kind: 'configure'; ports: GuardedPort[]; identity: KeyAndCertificate | null }
  | { kind: 'connection'; hostPort: number };

/** From a worker: it has the socket of a connection now, or it has had no connection for a while. */
export type WorkerWord = { kind: 'taken' } | { kind: 'idle' };
