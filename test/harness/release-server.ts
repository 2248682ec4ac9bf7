import { Server, ServerCredentials, status, type ServerDuplexStream, type ServerWritableStream } from '@grpc/grpc-js';
import {
  AgentServiceService,
  ReleaseFile,
  Welcome,
  type AgentMessage,
  type ControlMessage,
  type Hello,
  type LoadReleaseRequest,
  type LoadReleaseResponse,
  type UpgradeReport,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { GATEWAY_OPTIONS, HEARTBEAT_MS, PROTOCOL_MAX } from '../../shared/protocol.js';
import type { ReleaseFiles } from './signed-release.js';

const CHUNK_BYTES = 64 * 1024;
type Load = ServerWritableStream<LoadReleaseRequest, LoadReleaseResponse>;

/** A control plane, as far as an agent sees one that upgrades itself. */
export class ReleaseServer {
  private readonly server = new Server(GATEWAY_OPTIONS);
  private stream: ServerDuplexStream<AgentMessage, ControlMessage> | undefined;
  readonly hellos: Hello[] = [];
  readonly reports: UpgradeReport[] = [];
  /** What was asked for, and how the host has authenticated. */
  readonly loads: { file: ReleaseFile; offset: number; authorization: unknown }[] = [];
  files: ReleaseFiles | undefined;
  /** Answers a request in another way; returns false to answer it as usual. */
  answer: (load: Load) => boolean = () => false;
  address = '';

  async start(): Promise<void> {
    this.server.addService(AgentServiceService, {
      enroll: (_: unknown, callback: (error: Error) => void) => callback(new Error('not here')),
      renew: (_: unknown, callback: (error: Error) => void) => callback(new Error('not here')),
      connect: (stream: ServerDuplexStream<AgentMessage, ControlMessage>) => this.connect(stream),
      loadRelease: (load: Load) => this.load(load),
    });
    const port = await new Promise<number>((resolve, reject) =>
      this.server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    this.address = `127.0.0.1:${port}`;
  }

  stop(): void {
    this.server.forceShutdown();
  }

  /** Asks the agent to upgrade itself. */
  ask(version: string): void {
    this.stream?.write({ message: { $case: 'upgrade', value: { version } } });
  }

  /** Ends the stream, so that the agent dials again. */
  cut(): void {
    this.stream?.end();
  }

  private connect(stream: ServerDuplexStream<AgentMessage, ControlMessage>): void {
    stream.on('error', () => undefined);
    stream.on('data', ({ message }: AgentMessage) => {
      if (message?.$case === 'upgradeReport') this.reports.push(message.value);
      if (message?.$case !== 'hello') return;
      this.hellos.push(message.value);
      this.stream = stream;
      const value = { protocol: PROTOCOL_MAX, epoch: 1, incarnation: 'i', heartbeatMs: HEARTBEAT_MS };
      stream.write({ message: { $case: 'welcome', value: Welcome.fromPartial(value) } });
    });
  }

  private load(load: Load): void {
    load.on('error', () => undefined);
    const { file, offset } = load.request;
    this.loads.push({ file, offset, authorization: load.metadata.get('authorization')[0] });
    if (this.answer(load)) return;
    const given = this.fileOf(file);
    if (!given) return void load.emit('error', { code: status.NOT_FOUND, details: 'there is no release for hosts' });
    send(load, given, given.content.length);
    load.end();
  }

  fileOf(file: ReleaseFile): ReleaseFiles['tarball'] | undefined {
    switch (file) {
      case ReleaseFile.RELEASE_FILE_TARBALL:
        return this.files?.tarball;
      case ReleaseFile.RELEASE_FILE_SUMS:
        return this.files?.sums;
      case ReleaseFile.RELEASE_FILE_SIGNATURE:
        return this.files?.signature;
      default:
        return undefined;
    }
  }
}

/** Sends what follows after the offset of the request, up to `end`. */
export function send(load: Load, { name, content }: ReleaseFiles['tarball'], end: number): void {
  let from = load.request.offset;
  let about = { name, size: content.length };
  do {
    const data = content.subarray(from, Math.min(from + CHUNK_BYTES, end));
    load.write({ ...about, data });
    about = { name: '', size: 0 };
    from += data.length;
  } while (from < end);
}
