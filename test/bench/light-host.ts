import { connect as connectTcp, type Socket } from 'node:net';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { retryDelayMs, spreadDelayMs } from '../../agent/link/backoff.js';
import { AgentMessage, ControlMessage, type Welcome } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { CONTROL_PLANE_NAME } from '../../shared/network/tls.js';

/** As in the agent: a control plane that does not answer in time is dialed again. */
const WELCOME_MS = 15_000;
const KEEPALIVE_MS = 20_000;
const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const;
const [END_HEADERS, ACK] = [4, 1];
const STREAM = 1;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const NOTHING = Buffer.alloc(0);

export interface FleetTarget {
  host: string;
  port: number;
}

export interface FleetKeys {
  authority: string;
  key: string;
}

/** What a host of the fleet is and says. */
export interface HostIdentity {
  certificate: string;
  hello: () => Uint8Array;
  heartbeat: () => Uint8Array;
}

export interface HostEvents {
  welcomed: (welcome: Welcome) => void;
  lost: (reason: string) => void;
  sent: () => void;
}

/**
 * A host that speaks the wire by hand, over TLS with its certificate: it costs less than a gRPC client, so that ten thousand of them
 * are not what is measured. It dials again like an agent.
 */
export class LightHost {
  epoch = 0;
  isWelcomed = false;
  private socket: Socket | undefined;
  private context: SecureContext | undefined;
  private unread: Buffer = NOTHING;
  private timers: NodeJS.Timeout[] = [];
  private attempts = 0;
  private heard = 0;
  private isOver = false;
  private spreadMs = 0;

  constructor(
    private readonly identity: HostIdentity,
    private readonly keys: FleetKeys,
    private readonly target: () => FleetTarget,
    private readonly events: HostEvents,
  ) {}

  dial(): void {
    const socket = connectTcp({ ...this.target(), noDelay: true });
    this.socket = socket;
    // A handshake is prepared only once somebody listens: attempts while the control plane is down cost little.
    socket.on('connect', () => this.secure(socket));
    socket.on('error', (error: Error) => this.lost(socket, error.message));
    socket.on('close', () => this.lost(socket, 'closed'));
    this.later(WELCOME_MS, () => !this.isWelcomed && this.lost(socket, 'no welcome'));
  }

  private secure(tcp: Socket): void {
    const { authority: ca, key } = this.keys;
    this.context ??= createSecureContext({ ca, key, cert: this.identity.certificate });
    const socket = connect({
      socket: tcp,
      secureContext: this.context,
      servername: CONTROL_PLANE_NAME,
      ALPNProtocols: ['h2'],
    });
    this.socket = socket;
    socket.on('secureConnect', () => this.greet(socket));
    socket.on('data', (bytes: Buffer) => this.read(socket, bytes));
    socket.on('error', (error: Error) => this.lost(socket, error.message));
    socket.on('close', () => this.lost(socket, 'closed'));
  }

  close(): void {
    this.isOver = true;
    this.timers.forEach(clearTimeout);
    this.socket?.destroy();
  }

  private greet(socket: TLSSocket): void {
    socket.write(
      Buffer.concat([
        PREFACE,
        frame(FRAME.settings, 0, 0, NOTHING),
        frame(FRAME.headers, END_HEADERS, STREAM, HEADERS),
        dataOf(this.identity.hello()),
      ]),
    );
  }

  private read(socket: TLSSocket, bytes: Buffer): void {
    let rest = this.unread.length === 0 ? bytes : Buffer.concat([this.unread, bytes]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3);
      this.take(socket, rest[3] ?? 0, rest[4] ?? 0, rest.subarray(9, end));
      rest = rest.subarray(end);
    }
    this.unread = rest;
  }

  private take(socket: TLSSocket, type: number, flags: number, payload: Buffer): void {
    if (type === FRAME.settings && flags !== ACK) socket.write(frame(FRAME.settings, ACK, 0, NOTHING));
    if (type === FRAME.ping && flags !== ACK) socket.write(frame(FRAME.ping, ACK, 0, payload));
    if (type === FRAME.goAway || type === FRAME.reset) this.lost(socket, 'refused');
    // The end of the stream in its trailers.
    if (type === FRAME.headers && (flags & 1) === 1) this.lost(socket, 'refused');
    if (type === FRAME.data) this.hear(socket, payload);
  }

  /** The welcome is the first message; it fits into a frame. */
  private hear(socket: TLSSocket, payload: Buffer): void {
    this.heard += payload.length;
    if (this.heard > 16_384) {
      for (const stream of [0, STREAM]) socket.write(frame(FRAME.windowUpdate, 0, stream, uint32(this.heard)));
      this.heard = 0;
    }
    if (this.isWelcomed || payload.length < 5) return;
    const { message } = ControlMessage.decode(payload.subarray(5));
    if (message?.$case !== 'welcome') return;
    this.isWelcomed = true;
    this.attempts = 0;
    this.epoch = message.value.epoch;
    this.spreadMs = message.value.redialSpreadMs;
    this.timers.forEach(clearTimeout);
    this.timers = [];
    this.events.welcomed(message.value);
    this.repeat(message.value.heartbeatMs, () => {
      this.events.sent();
      socket.write(dataOf(this.identity.heartbeat()));
    });
    this.repeat(KEEPALIVE_MS, () => socket.write(frame(FRAME.ping, 0, 0, Buffer.alloc(8))));
  }

  private lost(socket: Socket, reason: string): void {
    if (socket !== this.socket) return;
    this.socket = undefined;
    this.unread = NOTHING;
    this.isWelcomed = false;
    this.timers.forEach(clearTimeout);
    this.timers = [];
    socket.destroy();
    this.events.lost(reason);
    if (this.isOver) return;
    const { spreadMs } = this;
    this.spreadMs = 0;
    const delayMs =
      spreadMs > 0 ? spreadDelayMs(spreadMs, Math.random()) : retryDelayMs(this.attempts++, Math.random());
    this.later(delayMs, () => this.dial());
  }

  private later(ms: number, run: () => void): void {
    this.timers.push(setTimeout(run, ms));
  }

  private repeat(ms: number, run: () => void): void {
    run();
    this.timers.push(setInterval(run, ms));
  }
}

export function encodeMessage(message: NonNullable<AgentMessage['message']>): Uint8Array {
  return AgentMessage.encode({ message }).finish();
}

function dataOf(message: Uint8Array): Buffer {
  return frame(FRAME.data, 0, STREAM, Buffer.concat([NOTHING_COMPRESSED, uint32(message.length), message]));
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const NOTHING_COMPRESSED = Buffer.alloc(1);

/** Literal header fields without an index and without Huffman coding, so that no table has to be kept. */
const HEADERS = Buffer.concat(
  Object.entries({
    ':method': 'POST',
    ':scheme': 'https',
    ':path': '/gpurent.agent.v1.AgentService/Connect',
    ':authority': 'bench',
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': 'bench',
  }).flatMap(([name, value]) => [
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]),
);
