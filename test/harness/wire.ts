import { fileURLToPath } from 'node:url';
import {
  credentials,
  loadPackageDefinition,
  type ChannelCredentials,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientOptions,
  type Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { existsSync } from 'node:fs';
import { NO_KEEPALIVE } from '../../shared/protocol.js';

/**
 * The wire as a second, independent reader of the same file sees it: loaded at run time, not generated. Messages are plain
 * objects whose oneof names its member.
 */
export interface WireCommand {
  requestId?: string;
  commandId: string;
  instanceId: string;
  sequence: number;
  desired: 'running' | 'stopped' | 'absent' | 'kept';
  access?: { revision: number; tokenHash: string; sshAuthorizedKey: string; env: { key: string; value: string }[] };
  running?: {
    mayCreate: boolean;
    spec: {
      gpuUuids: string[];
      /** Missing in protocol 1. */
      origin?: string;
      sshAuthorizedKey: string;
      env: { key: string; value: string }[];
      virtualMachine: boolean;
    };
  };
  stopped?: { releaseGpus: boolean };
}

export interface WireMessage {
  message:
    | 'welcome'
    | 'command'
    | 'resultAck'
    | 'reportAck'
    | 'logSubscribe'
    | 'logUnsubscribe'
    | 'paidTimes'
    | 'measurementQuery'
    | 'upgrade';
  welcome?: {
    protocol: number;
    epoch: number;
    incarnation: string;
    floors: { instanceId: string; sequence: number; reportNumber: number }[];
    heartbeatMs: number;
    /** Missing in protocol 1. */
    redialSpreadMs?: number;
    /** Missing in protocol 1. */
    takesMeasurements?: boolean;
    /** Missing in protocol 1. */
    takesFindings?: boolean;
  };
  command?: WireCommand;
  resultAck?: { commandId: string };
  reportAck?: { instanceId: string; number: number };
  logSubscribe?: { subscriptionId: string; instanceId: string; tail: number; since: string };
  logUnsubscribe?: { subscriptionId: string };
  paidTimes?: { instances: { instanceId: string; paidMs: number }[] };
  measurementQuery?: { queryId: string; instanceId: string };
  upgrade?: { version: string };
}

export type WireStream = ClientDuplexStream<Record<string, unknown>, WireMessage>;

export interface WireEnrolled {
  hostId: string;
  credential: string;
  certificate: string;
}

export interface WireClient {
  enroll(
    request: {
      token: string;
      inventory: unknown;
      certificateRequest?: Buffer;
      hostId?: string;
      earlier?: readonly object[];
    },
    callback: (error: ServiceError | null, answer: WireEnrolled) => void,
  ): void;
  renew(
    request: { certificateRequest: Buffer },
    callback: (error: ServiceError | null, answer: { certificate: string }) => void,
  ): void;
  connect(metadata: Metadata): WireStream;
  loadRelease(
    request: { file: string; offset: number },
    metadata: Metadata,
  ): ClientReadableStream<{ name: string; size: number; data: Buffer }>;
  close(): void;
}

const PATH = 'gpurent/agent/v1/agent.proto';

/** Where the wire is written down: as it is, or as it was when protocol 1 was released. */
export const WIRES = { now: `proto/${PATH}`, 'protocol 1': `test/fixtures/protocol-1/${PATH}` } as const;
export type WireVersion = keyof typeof WIRES;

const services = new Map<WireVersion, ServiceClientConstructor>();

/** Returns the service as its file says. Each file is read once in a process: that takes 30 ms. */
export function readWire(version: WireVersion = 'now'): ServiceClientConstructor {
  const service = services.get(version) ?? loadService(version);
  services.set(version, service);
  return service;
}

function loadService(version: WireVersion): ServiceClientConstructor {
  // From sources this file stands two levels below the root, compiled it stands three.
  const file = ['../../', '../../../']
    .map((up) => fileURLToPath(new URL(up + WIRES[version], import.meta.url)))
    .find(existsSync);
  if (!file) throw new Error(`${WIRES[version]} is not here`);
  const definition = loadSync(file, { longs: Number, enums: String, defaults: true, oneofs: true });
  const { gpurent } = loadPackageDefinition(definition) as unknown as {
    gpurent: { agent: { v1: { AgentService: ServiceClientConstructor } } };
  };
  return gpurent.agent.v1.AgentService;
}

/** In plain text, unless `connection` says how else. Without keepalive: a test that computes for ten seconds would end its own streams. */
export function dialWire(
  address: string,
  [secured, options]: [ChannelCredentials, ClientOptions] = [credentials.createInsecure(), {}],
  version: WireVersion = 'now',
): WireClient {
  return new (readWire(version))(address, secured, { ...options, ...NO_KEEPALIVE }) as unknown as WireClient;
}
