import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Clock, Timer } from '../../../shared/clock.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { Refusal } from '../../domain/refusal.js';
import { overShare, type Holder } from '../../domain/shared-total.js';
import type { App } from '../../services/parts/parts.js';
import { clientNetwork } from '../access/client.js';
import { holderOfRequest } from './large-bodies.js';

/** Most long lists that are sent at once: of one person, and of all. */
export const LISTS_OF_PERSON = 2;
const LISTS_AT_ONCE = 16;
/** Most long lists of one person that wait for one of these places, and how long each waits. */
export const WAITING_OF_PERSON = 32;
export const WAIT_MS = 5_000;
/** Most requests for lists of one user that wait for a turn of the event loop. */
export const REQUESTS_OF_USER = 256;
/** How long a client can take to receive a piece. */
const STALLED_MS = MINUTE_MS;

declare module 'fastify' {
  interface FastifyInstance {
    lists: ListTurns;
  }
}

/** A list of more than one piece. */
interface LongList {
  holder: Holder;
  reply: FastifyReply;
  timer?: Timer;
}

interface Waiting extends LongList {
  start: () => void;
}

/**
 * Shares the event loop among lists, so that those of one user delay nobody else: one piece is read in each turn of the loop, and users
 * take turns. Of the lists that are longer than a piece, few are sent at once, which bounds their memory.
 */
export class ListTurns {
  /** What waits for a turn of the event loop, by user; the user who comes next is first. */
  private readonly lines = new Map<string, (() => void)[]>();
  private isTaken = false;
  private readonly sent = new Set<LongList>();
  private readonly waiting = new Set<Waiting>();

  constructor(
    private readonly defer: App['defer'],
    private readonly clock: Pick<Clock, 'schedule'>,
    private readonly holderOf: (request: FastifyRequest) => Holder,
  ) {}

  /** Runs `run` for a request, in a turn of the event loop of its own. Refuses with RATE_LIMITED if too many of its user wait. */
  ask(request: FastifyRequest, run: () => void): void {
    const owner = ownerOf(request);
    if ((this.lines.get(owner)?.length ?? 0) >= REQUESTS_OF_USER) throw tooMany(1);
    this.take(owner, run);
  }

  /** Waits for the turn of the next piece of an answer, whose client has taken the one before. */
  async turn(reply: FastifyReply): Promise<void> {
    for (const list of this.sent) if (list.reply === reply) this.watch(list);
    await new Promise<void>((resolve) => this.take(ownerOf(reply.request), resolve));
  }

  /**
   * Waits until the rest of a list that is longer than a piece can be sent; returns undefined if that is at once. It has its place until
   * the answer ends, or until its client takes nothing for a minute. Refuses with RATE_LIMITED if too many wait, or after a few seconds.
   */
  begin(reply: FastifyReply): Promise<void> | undefined {
    const list: LongList = { holder: this.holderOf(reply.request), reply };
    if (this.losersFor(list).length === 0) {
      this.send(list);
      return undefined;
    }
    const { person } = list.holder;
    if (count(this.waiting, person) >= WAITING_OF_PERSON) throw tooMany(WAIT_MS / 1_000);
    return new Promise((resolve, reject) => this.wait({ ...list, start: resolve }, reject));
  }

  /** Runs `run` in a turn of the event loop in which no other piece is read: in this one, if none was yet. */
  private take(owner: string, run: () => void): void {
    if (!this.isTaken) {
      this.isTaken = true;
      this.defer(() => this.next());
      run();
      return;
    }
    const line = this.lines.get(owner);
    if (line) line.push(run);
    else this.lines.set(owner, [run]);
  }

  private next(): void {
    const [first] = this.lines;
    if (!first) {
      this.isTaken = false;
      return;
    }
    const [owner, line] = first;
    this.lines.delete(owner);
    const run = line.shift();
    // Behind the other users.
    if (line.length > 0) this.lines.set(owner, line);
    this.defer(() => this.next());
    run?.();
  }

  private wait(list: Waiting, refuse: (why: Refusal) => void): void {
    const end = () => {
      this.waiting.delete(list);
      list.timer?.cancel();
      refuse(tooMany(WAIT_MS / 1_000));
    };
    this.waiting.add(list);
    list.reply.raw.once('close', end);
    list.timer = this.clock.schedule(WAIT_MS, () => {
      // Who has waited gets a place of somebody with more of them.
      const losers = this.losersFor(list);
      if (losers.includes(list)) return end();
      for (const loser of losers) this.end(loser);
      this.start(list);
    });
  }

  private start(list: Waiting): void {
    this.waiting.delete(list);
    list.timer?.cancel();
    this.send(list);
    list.start();
  }

  private send(list: LongList): void {
    this.sent.add(list);
    this.watch(list);
    list.reply.raw.once('close', () => this.end(list));
  }

  private watch(list: LongList): void {
    list.timer?.cancel();
    list.timer = this.clock.schedule(STALLED_MS, () => this.end(list));
  }

  /** Frees the place of a list. One that is not sent to its end is cut off. */
  private end(list: LongList): void {
    if (!this.sent.delete(list)) return;
    list.timer?.cancel();
    if (!list.reply.raw.destroyed && !list.reply.raw.writableFinished) list.reply.raw.destroy();
    for (const next of Array.from(this.waiting)) if (this.losersFor(next).length === 0) this.start(next);
  }

  /** Returns the lists that have to go for another one: that one itself, if its person has enough, or as many as anybody. */
  private losersFor(newcomer: LongList): LongList[] {
    if (count(this.sent, newcomer.holder.person) >= LISTS_OF_PERSON) return [newcomer];
    return overShare([newcomer, ...this.sent], {
      most: LISTS_AT_ONCE,
      holderOf: ({ holder }) => holder,
      mayLose: (list) => list === newcomer || !list.holder.hasPaid,
    });
  }
}

/** Lets each request for a list wait for its turn; see {@link ListTurns}. */
export function shareLists(app: FastifyInstance, platform: App): void {
  const lists = new ListTurns(platform.defer, platform.clock, (request) => holderOfRequest(platform, request));
  app.decorate('lists', lists);
  app.addHook('onRoute', (route) => {
    if (!isList(route)) return;
    route.preHandler = [
      ...[route.preHandler ?? []].flat(),
      (request, _reply, done) => {
        try {
          lists.ask(request, done);
        } catch (error) {
          done(error as Refusal);
        }
      },
    ];
  });
}

/** Tells whether a route answers with a list: as JSON, which comes in pages, too, or as a file. */
function isList({ url, schema }: RouteOptions): boolean {
  const { properties } = (schema?.querystring ?? {}) as { properties?: object };
  return url.endsWith('.csv') || (properties !== undefined && 'cursor' in properties);
}

/** Returns whose turn a request takes: the user's, or who has created the API key; a stranger's network. */
function ownerOf(request: FastifyRequest): string {
  const { caller } = request;
  if (!caller) return clientNetwork(request);
  return caller.kind === 'api_key' ? caller.creatorId : caller.userId;
}

function count(lists: Iterable<LongList>, person: string): number {
  let found = 0;
  for (const { holder } of lists) if (holder.person === person) found += 1;
  return found;
}

function tooMany(seconds: number): Refusal {
  return new Refusal(
    'RATE_LIMITED',
    `too many lists are read at once; ask for fewer at once, and try again in ${seconds} s`,
    { retry_after_seconds: seconds },
  );
}
