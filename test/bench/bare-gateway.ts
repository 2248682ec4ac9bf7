import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { readFileSync } from 'node:fs';
import {
  AgentServiceService,
  type AgentMessage,
  type ControlMessage,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { GATEWAY_OPTIONS, HEARTBEAT_MS, STREAMS_OF_A_HOST } from '../../shared/protocol.js';

export interface BareSettings {
  authority: string;
  certificate: string;
  key: string;
  port: number;
  epoch: number;
  redialSpreadMs: number;
}

/** The limit: a gRPC server with the same credentials and messages that answers each hello and does nothing else. */
const settings = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as BareSettings;
const server = new Server({ ...GATEWAY_OPTIONS, ...STREAMS_OF_A_HOST });
const { epoch, port } = settings;
const about = {
  protocol: 2,
  epoch,
  incarnation: 'bare',
  floors: [],
  heartbeatMs: HEARTBEAT_MS,
  takesUnseen: true,
  takesMeasurements: true,
  takesFindings: true,
};
const welcome = { ...about, redialSpreadMs: settings.redialSpreadMs };
server.addService(AgentServiceService, {
  connect: (stream: ServerDuplexStream<AgentMessage, ControlMessage>) => {
    stream.on('error', () => undefined);
    stream.on('end', () => stream.end());
    stream.on('data', ({ message }: AgentMessage) => {
      if (message?.$case === 'hello') stream.write({ message: { $case: 'welcome', value: welcome } });
    });
  },
  enroll: () => undefined,
  renew: () => undefined,
});
const pair = { private_key: Buffer.from(settings.key), cert_chain: Buffer.from(settings.certificate) };
const credentials = ServerCredentials.createSsl(Buffer.from(settings.authority), [pair], true);
server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) => {
  if (error) throw error;
  process.stdout.write(`${JSON.stringify({ grpc: `127.0.0.1:${bound}` })}\n`);
});
