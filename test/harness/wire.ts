import { fileURLToPath } from 'node:url';
import {
  credentials,
  loadPackageDefinition,
  type ClientDuplexStream,
  type Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { existsSync } from 'node:fs';

/**
 * The wire as a second, independent reader of the same file sees it: loaded at run time, not generated. Messages are plain
 * objects whose oneof names its member.
 */
export interface WireCommand {
  commandId: string;
  instanceId: string;
  sequence: number;
  desired: 'running' | 'stopped' | 'absent';
  running?: {
    mayCreate: boolean;
    spec: {
      gpuUuids: string[];
      sshAuthorizedKey: string;
      env: { key: string; value: string }[];
      virtualMachine: boolean;
    };
  };
  stopped?: { releaseGpus: boolean };
}

export interface WireMessage {
  message: 'welcome' | 'command' | 'resultAck' | 'reportAck' | 'logSubscribe' | 'logUnsubscribe';
  welcome?: {
    epoch: number;
    incarnation: string;
    floors: { instanceId: string; sequence: number; reportNumber: number }[];
    heartbeatMs: number;
  };
  command?: WireCommand;
  resultAck?: { commandId: string };
  reportAck?: { instanceId: string; number: number };
  logSubscribe?: { subscriptionId: string; instanceId: string; tail: number; since: string };
  logUnsubscribe?: { subscriptionId: string };
}

export type WireStream = ClientDuplexStream<Record<string, unknown>, WireMessage>;

export interface WireClient {
  enroll(
    request: { token: string; inventory: unknown },
    callback: (error: ServiceError | null, answer: { hostId: string; credential: string }) => void,
  ): void;
  connect(metadata: Metadata): WireStream;
  close(): void;
}

const relative = 'proto/gpurent/agent/v1/agent.proto';
// From sources this file stands two levels below the root, compiled it stands three.
const file = ['../../', '../../../']
  .map((up) => fileURLToPath(new URL(up + relative, import.meta.url)))
  .find(existsSync);

export function dialWire(address: string): WireClient {
  if (!file) throw new Error(`${relative} is not here`);
  const definition = loadSync(file, { longs: Number, enums: String, defaults: true, oneofs: true });
  const { gpurent } = loadPackageDefinition(definition) as unknown as {
    gpurent: { agent: { v1: { AgentService: new (address: string, credentials: unknown) => WireClient } } };
  };
  return new gpurent.agent.v1.AgentService(address, credentials.createInsecure());
}
