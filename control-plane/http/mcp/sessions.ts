import type { McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import type { Clock, Timer } from '../../../shared/clock.js';
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import { Refusal } from '../../domain/refusal.js';
import { overShare, type Holder } from '../../domain/shared-total.js';

/** The most sessions of one API key, and of all: see {@link overShare}. */
export const MOST_OF_KEY = 8;
export const MOST_IN_ALL = 256;
/** The most calls of one session that wait for their answer at once. */
export const MOST_CALLS = 8;
/** How long a session lasts without a request, and in all. */
export const IDLE_MS = 30 * MINUTE_MS;
export const AGE_MS = 24 * HOUR_MS;

/** A session of a client of the protocol before 2026, which keeps one: it belongs to the key that has opened it. */
export interface Session {
  readonly id: string;
  readonly keyId: string;
  /** Whose it is, as it was opened. */
  readonly holder: Holder;
  /** By which changes its end is told: the hash of the token, the creator of the key, and the organization. */
  readonly changedBy: readonly string[];
  readonly server: McpServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** From where its last request came. */
  address: string;
  /** Tells whether its key may still use it. */
  isStillAdmitted: () => boolean;
}

interface Held {
  session: Session;
  /** On the monotonic clock. */
  endsAt: number;
  calls: number;
  timer: Timer | undefined;
}

/** The open sessions, the one that was used longest ago first. Bounded for each key and in all: one more ends one that nothing waits in. */
export class McpSessions {
  private readonly held = new Map<string, Held>();
  private isClosed = false;

  constructor(private readonly clock: Pick<Clock, 'monotonic' | 'schedule'>) {}

  get count(): number {
    return this.held.size;
  }

  /** Makes room for a session, and adds it. Refuses with UNAVAILABLE if calls wait in all that could go, and once they were all ended. */
  add(session: Session): void {
    if (this.isClosed) throw new Refusal('UNAVAILABLE', 'the control plane is stopping; try again shortly');
    this.makeRoom(session);
    const held: Held = { session, endsAt: this.clock.monotonic() + AGE_MS, calls: 0, timer: undefined };
    this.note(held);
  }

  /** Returns the session with this id, and notes its use. Refuses with SESSION_NOT_FOUND, also if it is another key's. */
  find(id: string, keyId: string): Session {
    const held = this.held.get(id);
    if (held?.session.keyId !== keyId)
      throw new Refusal('SESSION_NOT_FOUND', 'there is no such MCP session; initialize a new one');
    this.note(held);
    return held.session;
  }

  /** Counts a call until the returned function is called. Refuses with UNAVAILABLE if too many wait for their answer. */
  beginCall({ id }: Session): () => void {
    const held = this.held.get(id);
    if (!held) return () => undefined;
    if (held.calls >= MOST_CALLS)
      throw new Refusal('UNAVAILABLE', `${MOST_CALLS} calls of this session wait for their answer; wait for one`);
    held.calls += 1;
    return () => {
      held.calls -= 1;
    };
  }

  end(id: string): void {
    const held = this.held.get(id);
    if (!held) return;
    this.held.delete(id);
    held.timer?.cancel();
    void held.session.server.close();
  }

  /** Ends those of the sessions with a change whose key has ended, or may not do this any more. */
  endRefused(changed: ReadonlySet<string>): void {
    for (const { session } of Array.from(this.held.values()))
      if (session.changedBy.some((key) => changed.has(key)) && !session.isStillAdmitted()) this.end(session.id);
  }

  /** Ends every session. From then on none is added. */
  endAll(): void {
    this.isClosed = true;
    for (const id of Array.from(this.held.keys())) this.end(id);
  }

  private makeRoom(newcomer: Session): void {
    const all = [...this.held.values()];
    const own = all.filter(({ session }) => session.keyId === newcomer.keyId);
    const unused = own.length < MOST_OF_KEY ? undefined : own.find(({ calls }) => calls === 0);
    if (own.length >= MOST_OF_KEY && !unused) throw tooMany();
    const rest = all.filter((each) => each !== unused).map(({ session }) => session);
    const losers = overShare([...rest, newcomer], {
      most: MOST_IN_ALL,
      holderOf: ({ holder }) => holder,
      mayLose: ({ id }) => (this.held.get(id)?.calls ?? 0) === 0,
    });
    if (losers.includes(newcomer)) throw tooMany();
    for (const { id } of [...(unused ? [unused.session] : []), ...losers]) this.end(id);
  }

  /** Puts a session to the end of the line, and sets when it ends unless it is used again. */
  private note(held: Held): void {
    const { id } = held.session;
    this.held.delete(id);
    this.held.set(id, held);
    held.timer?.cancel();
    const left = Math.min(IDLE_MS, held.endsAt - this.clock.monotonic());
    held.timer = this.clock.schedule(Math.max(0, left), () => this.end(id));
  }
}

function tooMany(): Refusal {
  return new Refusal('UNAVAILABLE', 'too many MCP sessions are open, and calls wait in all of them; end one');
}
