import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Timer } from '../../../shared/clock.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { OPERATORS } from '../../domain/event.js';
import { Refusal } from '../../domain/refusal.js';
import { overShare, type Holder } from '../../domain/shared-total.js';
import { onCredentialChange } from '../../services/identity/sessions/authenticate.js';
import { holderOf } from '../../services/organizations/holders.js';
import { hashToken } from '../../services/secrets/tokens.js';
import { envelopeOf } from '../../services/events/envelope.js';
import { MOST_EVENTS, eventsExpired, expiredTo } from '../../services/events/read.js';
import {
  nextEvents,
  positionOf,
  type EventFilter,
  type EventSlice,
  type Position,
} from '../../services/events/slice.js';
import type { App } from '../../services/parts/parts.js';
import { clientNetwork } from '../access/client.js';
import { isStillAdmitted, tokenOf } from '../access/policy.js';
import { credentialOf } from '../limits/rate-limits.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set if the answer can be a stream of events, which lasts for as long as its client wants. */
    hasStream?: true;
  }
}

/** The media type of server-sent events. */
export const EVENT_STREAM = 'text/event-stream';
/** Most streams of one API key, or of one user. */
export const MOST_OF_CREDENTIAL = 10;
/** Most streams of one organization, or of the operators. */
export const MOST_OF_STREAM = 100;
/** How many streams can be open of one user, in all organizations and with all API keys that the user has created; and how many in all. */
export interface StreamLimits {
  ofOneUser: number;
  inAll: number;
}
/** In all, fewer than there can be connections: requests are answered, too. */
export const STREAM_LIMITS: StreamLimits = { ofOneUser: 200, inAll: 8_192 };
const COMMENT_MS = 20_000;
/** How long a client can take to receive what was sent. */
const STALLED_MS = MINUTE_MS;
/** How long it can take to receive the end. */
const FAREWELL_MS = 5_000;
/** What clients are told to wait before they connect again. */
const RETRY_MS = 3_000;
/** Text that is sent at once, less the last event of it. */
const SLICE_CHARS = 64 * 1024;

/** What a client reads: the stream, which of its events, and after which one. */
export interface Reading {
  stream: string;
  filter: EventFilter;
  from: Position;
}

/** Runs one function in each turn of the event loop, so that many readers do not hold up requests. */
class Turns {
  private readonly waiting = new Set<() => void>();

  constructor(private readonly defer: App['defer']) {}

  /** Runs `run`, once, in a later turn. */
  take(run: () => void): void {
    if (this.waiting.size === 0) this.defer(() => this.next());
    this.waiting.add(run);
  }

  private next(): void {
    const [run] = this.waiting;
    if (!run) return;
    this.waiting.delete(run);
    if (this.waiting.size > 0) this.defer(() => this.next());
    run();
  }
}

/**
 * The events that one client receives, as server-sent events. It reads the store only while the client takes what was sent, so it keeps
 * one slice of text at most.
 */
class EventStream extends Readable {
  readonly credential: string;
  /** The user of the session, or who has created the API key. */
  readonly userId: string;
  /** By which changes of its credential are told: the hash of the token, the user, and the organization. */
  private readonly keys: readonly string[];
  private at: Position;
  /** The last id that the client knows. */
  private knownId: string;
  /** Whether the client has room for more. */
  private isWanted = false;
  /** Whether there can be events after `at`. */
  private isBehind = true;
  isOver = false;
  private stalled: Timer | undefined;
  private comment: Timer | undefined;
  private readonly endListening: () => void;

  constructor(
    private readonly platform: App,
    private readonly turns: Turns,
    private readonly request: FastifyRequest,
    private readonly response: FastifyReply['raw'],
    readonly reading: Reading,
    /** Whose it is, as it was opened. */
    readonly holder: Holder,
  ) {
    // Without a buffer of its own it is asked for more only when the connection takes more.
    super({ highWaterMark: 0 });
    const { caller } = request;
    this.credential = credentialOf(request);
    this.userId = userOf(request);
    const organization = caller === undefined || caller.kind === 'no_organization' ? '' : caller.organizationId;
    this.keys = [hashToken(tokenOf(request) ?? ''), this.userId, organization];
    this.at = reading.from;
    this.knownId = reading.from.id;
    this.endListening = platform.hub.listen(reading.stream, () => {
      this.isBehind = true;
      this.turns.take(this.deliver);
    });
    this.comment = platform.clock.schedule(COMMENT_MS, this.sayIsThere);
    response.once('close', () => this.stop());
    this.send(`retry: ${RETRY_MS}\nid: ${this.knownId}\n\n`);
  }

  override _read(): void {
    this.isWanted = true;
    this.stalled?.cancel();
    if (this.isBehind) this.turns.take(this.deliver);
  }

  /** Ends the stream if what its credential may do has changed, and it may not have this stream any more. */
  noteChange(changed: ReadonlySet<string>): void {
    if (this.keys.some((key) => changed.has(key))) this.orDestroy(() => this.mayGoOn());
  }

  /** Ends the stream with a comment. Ends the connection, too, if the client does not take that in time. */
  finish(why: string): void {
    if (this.isOver) return;
    this.stop();
    this.push(`: ${why}\n\n`);
    this.push(null);
    const cut = this.platform.clock.schedule(FAREWELL_MS, () => this.response.destroy());
    this.response.once('close', () => cut.cancel());
  }

  private stop(): void {
    this.isOver = true;
    this.endListening();
    this.comment?.cancel();
    this.stalled?.cancel();
  }

  private mayGoOn(): boolean {
    if (isStillAdmitted(this.platform, this.request)) return true;
    this.finish('this credential may not read these events any more');
    return false;
  }

  private readonly sayIsThere = (): void => {
    this.comment = this.platform.clock.schedule(COMMENT_MS, this.sayIsThere);
    this.orDestroy(() => {
      if (!this.mayGoOn() || !this.isWanted) return;
      // A filter may have left out all events since; a client that resumes after this one does not look at them again.
      const id = this.at.id === this.knownId ? '' : `id: ${this.at.id}\n`;
      this.knownId = this.at.id;
      this.send(`:\n${id}\n`);
    });
  };

  /** Sends a slice of what is new. */
  private readonly deliver = (): void => {
    if (this.isOver || !this.isWanted || !this.isBehind) return;
    this.orDestroy(() => {
      if (!this.mayGoOn()) return;
      const slice = this.readNext();
      if (slice) this.sendSlice(slice);
    });
  };

  /** Reads the next slice. Ends the stream, and returns undefined, if events of it were deleted before it came to them. */
  private readNext(): EventSlice | undefined {
    const { stream, filter } = this.reading;
    try {
      return this.platform.store.transact((tx) => {
        if (this.at.number < expiredTo(tx, stream)) throw eventsExpired(tx, stream);
        return nextEvents(tx, stream, this.at, filter, MOST_EVENTS);
      });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { code, message, extra } = error;
      this.push(`event: expired\ndata: ${JSON.stringify({ code, message, ...extra })}\n\n`);
      this.finish('events that were not read yet have been deleted');
      return undefined;
    }
  }

  private sendSlice({ events, at, hasMore }: EventSlice): void {
    let text = '';
    let count = 0;
    for (const event of events) {
      if (text.length >= SLICE_CHARS) break;
      const envelope = envelopeOf(this.platform, event);
      text += `id: ${envelope.id}\nevent: ${envelope.type}\ndata: ${JSON.stringify(envelope)}\n\n`;
      count += 1;
    }
    const last = events[count - 1];
    const isCut = count < events.length;
    this.at = isCut && last ? positionOf(last) : at;
    this.isBehind = isCut || hasMore;
    if (last) {
      this.knownId = positionOf(last).id;
      this.send(text);
    } else if (this.isBehind) {
      this.turns.take(this.deliver);
    }
  }

  private send(text: string): void {
    this.isWanted = false;
    this.stalled?.cancel();
    this.stalled = this.platform.clock.schedule(STALLED_MS, () =>
      this.finish('this was not received for a minute; connect again with the last id'),
    );
    this.push(text);
  }

  /** Runs `work` outside of any request, so that nobody else hears of its errors. */
  private orDestroy(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.request.log.error({ err: error }, 'an event stream has failed');
      this.response.destroy();
    }
  }
}

/** The open streams of events of a control plane. */
export class EventStreams {
  private readonly open = new Set<EventStream>();
  private readonly changed = new Set<string>();
  private readonly turns: Turns;
  private isClosing = false;

  constructor(
    private readonly platform: App,
    private readonly limits: StreamLimits = STREAM_LIMITS,
  ) {
    this.turns = new Turns(platform.defer);
    onCredentialChange(platform, (key) => this.note(key));
  }

  /**
   * Opens the stream that answers a request. It ends with its credential, with the connection, and when the server closes. Refuses with
   * STREAM_LIMIT_REACHED, and with UNAVAILABLE while the server closes or has no room for any more.
   */
  start(request: FastifyRequest, reply: FastifyReply, reading: Reading): Readable {
    if (this.isClosing) throw new Refusal('UNAVAILABLE', 'the control plane is stopping; try again shortly');
    this.checkLimits({ credential: credentialOf(request), userId: userOf(request) }, reading.stream);
    const holder = this.holderOf(request, reading.stream);
    for (const loser of this.losersFor(holder))
      loser.finish('there are too many streams of events, of your account more than of others; connect again later');
    const stream = new EventStream(this.platform, this.turns, request, reply.raw, reading, holder);
    this.open.add(stream);
    reply.raw.once('close', () => this.open.delete(stream));
    return stream;
  }

  get count(): number {
    return this.open.size;
  }

  private holderOf(request: FastifyRequest, stream: string): Holder {
    const network = clientNetwork(request);
    if (stream === OPERATORS) return { hasPaid: true, person: userOf(request), network };
    return this.platform.store.transact((tx) => holderOf(tx, stream, network));
  }

  /** Returns the streams that end for another one, none of them of a payer. Refuses with UNAVAILABLE if another one has to wait instead. */
  private losersFor(newcomer: Holder): EventStream[] {
    // The newcomer comes first: where all have as many, those that are open stay.
    const all = [undefined, ...[...this.open].filter((stream) => !stream.isOver)];
    const losers = overShare(all, {
      most: this.limits.inAll,
      holderOf: (stream) => stream?.holder ?? newcomer,
      mayLose: (stream) => !stream?.holder.hasPaid,
    });
    if (losers.includes(undefined))
      throw new Refusal('UNAVAILABLE', 'too many streams of events are open at this moment; read pages, or try again');
    return losers.filter((stream) => stream !== undefined);
  }

  /** Ends every stream. From then on none is opened. */
  close(): void {
    this.isClosing = true;
    for (const stream of this.open) stream.finish('the control plane is stopping; connect again with the last id');
  }

  private checkLimits({ credential, userId }: Pick<EventStream, 'credential' | 'userId'>, stream: string): void {
    const { ofOneUser } = this.limits;
    const [own, all, everywhere] = [
      this.countOf((each) => each.credential === credential),
      this.countOf(({ reading }) => reading.stream === stream),
      this.countOf((each) => each.userId === userId),
    ];
    if (own >= MOST_OF_CREDENTIAL) throw tooMany(MOST_OF_CREDENTIAL, 'this credential');
    if (all >= MOST_OF_STREAM) throw tooMany(MOST_OF_STREAM, 'all credentials that may read these events');
    if (everywhere >= ofOneUser) throw tooMany(ofOneUser, 'all sessions and API keys of this user');
  }

  private countOf(isCounted: (stream: EventStream) => boolean): number {
    let count = 0;
    for (const stream of this.open) if (isCounted(stream)) count += 1;
    return count;
  }

  private note(key: string): void {
    if (this.open.size === 0) return;
    if (this.changed.size === 0) this.platform.defer(() => this.tell());
    this.changed.add(key);
  }

  private tell(): void {
    const changed = new Set(this.changed);
    this.changed.clear();
    for (const stream of this.open) stream.noteChange(changed);
  }
}

function userOf({ caller }: Pick<FastifyRequest, 'caller'>): string {
  return caller?.kind === 'api_key' ? caller.creatorId : (caller?.userId ?? '');
}

function tooMany(limit: number, of: string): Refusal {
  return new Refusal('STREAM_LIMIT_REACHED', `${limit} streams of events are open with ${of}; end one first`, {
    limit,
  });
}
