import type { ServiceError } from '@grpc/grpc-js';
import type { Clock, Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { ControlMessage, Heartbeat, Hello, Welcome } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import { advisedDelayMs, retryDelayMs, spreadDelayMs } from './backoff.js';
import type { Dial, Wire } from './dial.js';
import { advisedMsOf, linkFailureOf, type LinkFailure } from './failure.js';
import type { Send } from './outbox.js';

/** What the link needs from the rest of the agent. */
export interface Subscriber {
  hello(): Promise<Hello>;
  heartbeat(): Promise<Omit<Heartbeat, 'atMs'>>;
  /** Called with the welcome; from now on `send` works. Throws to refuse the control plane. */
  connected(welcome: Welcome, send: Send): void;
  disconnected(): void;
  receive(message: ControlMessage): void;
}

const WELCOME_MS = 15_000;

/** Why an attempt to connect failed, or a connection ended; `at` in ms since 1970 UTC. */
export type DatedFailure = LinkFailure & { at: number };

/** The host's stream to the control plane, opened again whenever it ends, until the agent stops. */
export class Link {
  private stream: Wire | undefined;
  private retry: Timer | undefined;
  private heartbeat: Timer | undefined;
  private beat: () => void = () => {};
  /** Counts heartbeats, so that of several prepared at the same time only the latest is sent. */
  private gathered = 0;
  private welcomeDeadline: Timer | undefined;
  private attempts = 0;
  private welcomed = false;
  /** Over how long the control plane asked its hosts to spread their next attempts. */
  private spreadMs = 0;
  private stopped = false;
  private lastFailure: DatedFailure | undefined;
  private lastRefusal: DatedFailure | undefined;

  constructor(
    private readonly open: Dial,
    private readonly subscriber: Subscriber,
    private readonly clock: Clock,
    /** Returns a number in [0, 1) that spreads the next attempts of the hosts. */
    private readonly random: () => number,
    private readonly logger: Logger,
    private readonly paced = new PacedLog(clock, logger),
  ) {}

  /** True from the welcome until the stream ends. */
  get connected(): boolean {
    return this.welcomed;
  }

  /** The last failure; undefined while connected, and before the first attempt. */
  get failure(): DatedFailure | undefined {
    return this.lastFailure;
  }

  /** The last failure since the last connection that was not merely a lack of contact, even if later attempts failed for lack of contact. */
  get refusal(): DatedFailure | undefined {
    return this.lastRefusal;
  }

  start(): void {
    void this.dial();
  }

  /** Sends a heartbeat at once, instead of the next one and of one that is being prepared. */
  beatNow(): void {
    if (!this.welcomed) return;
    this.heartbeat?.cancel();
    this.beat();
  }

  stop(): void {
    this.stopped = true;
    this.retry?.cancel();
    this.lost(this.stream, other('the agent is stopping'));
  }

  private async dial(): Promise<void> {
    try {
      // Compares with Docker first, because the control plane acts on the contents of the hello.
      const hello = await this.subscriber.hello();
      if (this.stopped) return;
      const stream = this.open();
      this.stream = stream;
      stream.on('data', (message: ControlMessage) => this.receive(stream, message));
      stream.on('error', (error: ServiceError) =>
        this.lost(stream, linkFailureOf(error), () => this.delayAfter(advisedMsOf(error))),
      );
      stream.on('end', () =>
        this.lost(stream, other('the control plane has ended the stream'), () => this.delayAfter(0)),
      );
      stream.write({ message: { $case: 'hello', value: hello } });
      this.welcomeDeadline = this.clock.schedule(WELCOME_MS, () =>
        this.lost(stream, other('the control plane did not answer')),
      );
    } catch (error) {
      this.lost(this.stream, linkFailureOf(error));
    }
  }

  private receive(stream: Wire, message: ControlMessage): void {
    if (stream !== this.stream) return;
    try {
      if (message.message?.$case === 'welcome') this.welcome(stream, message.message.value);
      else this.subscriber.receive(message);
    } catch (error) {
      this.logger.error(
        { err: error, kind: message.message?.$case },
        `a message of the control plane could not be handled: ${messageOf(error)}`,
      );
    }
  }

  private welcome(stream: Wire, welcome: Welcome): void {
    let congested = false;
    stream.on('drain', () => (congested = false));
    const send: Send = (message, importance) => {
      if (stream !== this.stream || (congested && importance === 'may wait')) return false;
      congested = !stream.write(message);
      return true;
    };
    try {
      this.subscriber.connected(welcome, send);
    } catch (error) {
      return this.lost(stream, linkFailureOf(error));
    }
    this.welcomeDeadline?.cancel();
    this.attempts = 0;
    this.welcomed = true;
    this.spreadMs = welcome.redialSpreadMs;
    this.lastFailure = undefined;
    this.lastRefusal = undefined;
    this.paced.write('info', 'connected to the control plane');
    this.beat = () => {
      const said = this.sayHeartbeat(stream, welcome.heartbeatMs);
      said.catch((error: unknown) => this.lost(stream, linkFailureOf(error)));
    };
    this.beat();
  }

  private async sayHeartbeat(stream: Wire, everyMs: number): Promise<void> {
    const number = ++this.gathered;
    const value = await this.subscriber.heartbeat();
    if (stream !== this.stream || number !== this.gathered) return;
    const atMs = Math.max(Math.round(this.clock.now()), 0);
    stream.write({ message: { $case: 'heartbeat', value: { ...value, atMs } } });
    this.heartbeat = this.clock.schedule(everyMs, this.beat);
  }

  /** Returns how long to wait after the other side has ended the stream. With it, every host can have lost its stream. */
  private delayAfter(advisedMs: number): number {
    if (advisedMs > 0) return advisedDelayMs(advisedMs, this.random());
    const { spreadMs } = this;
    this.spreadMs = 0;
    return spreadMs > 0 ? spreadDelayMs(spreadMs, this.random()) : this.backOff();
  }

  private backOff(): number {
    return retryDelayMs(this.attempts++, this.random());
  }

  private lost(stream: Wire | undefined, failure: LinkFailure, delay = () => this.backOff()): void {
    if (stream !== this.stream) return;
    this.stream = undefined;
    this.welcomed = false;
    this.heartbeat?.cancel();
    this.welcomeDeadline?.cancel();
    stream?.cancel();
    this.subscriber.disconnected();
    if (this.stopped) return;
    this.lastFailure = { ...failure, at: this.clock.now() };
    if (failure.kind !== 'other') this.lastRefusal = this.lastFailure;
    const { reason } = failure;
    const delayMs = delay();
    this.paced.write('warn', 'not connected to the control plane', { reason, retryInMs: delayMs }, reason);
    this.retry = this.clock.schedule(delayMs, () => void this.dial());
  }
}

function other(reason: string): LinkFailure {
  return { kind: 'other', reason };
}
