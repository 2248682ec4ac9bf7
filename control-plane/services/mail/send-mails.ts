import { MINUTE_MS } from '../../../shared/time.js';
import { withTimeout } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import type { Logger } from '../../../shared/logger.js';
import {
  MAIL_LEASE_MS,
  MAIL_LIMITS,
  MAIL_TRIED_MS,
  URGENCIES,
  mailRetryMs,
  type Delivery,
  type Mail,
  type MailTransport,
  type Urgency,
} from '../../domain/mail/mail.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { heldUntil, holdMail, releaseHeld } from './flood.js';
import { finishMail, type MailRow } from './outbox.js';
import { UnusableMail, composeMail } from './compose.js';

/** Queued mails of one urgency that are looked at in one run. */
const LOOKED_AT = 50;
/** A mail of which the server has not said twice whether it has accepted it is not sent a third time. */
const MOST_UNANSWERED = 2;
/** While no mail can be sent at all, one is tried, after so long at first and at the longest. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 5 * MINUTE_MS;
/** How long a stop waits for mails that are on their way. */
const DRAIN_MS = 5_000;

/** Why a mail is given up. */
const TOO_LATE = 'it could not be sent for a day';
const REJECTED = 'the server does not accept it';
const NOT_ANSWERED = 'the server has not said twice whether it has accepted it';

interface Attempt {
  /** As it was before the attempt. */
  row: MailRow;
  mail: Mail;
}

type Place = Pick<MailRow, 'urgency' | 'sender'>;

/**
 * Sends queued mails. An attempt is committed before it begins, so that a crash leads to one repeat at most, with the same Message-ID. A
 * server that is away or slow holds up nothing else: sending is no part of any run.
 */
export class MailSender {
  private readonly inFlight = new Map<string, Place & { done: Promise<void> }>();
  /** Until when, of the monotonic clock, no mail is tried, and for how long that was; undefined: the server answers. */
  private pause: { until: number; ms: number } | undefined;
  private isStopped = false;

  constructor(
    private readonly platform: Platform,
    private readonly transport: MailTransport,
    private readonly logger: Logger,
  ) {}

  /** Begins to send mails that are due. Returns the numbers of those, and of digests that were made. Does not wait for the server. */
  readonly run = (): { begun: number; digests: number } => {
    const most = this.most();
    if (most === 0) return { begun: 0, digests: 0 };
    const { attempts, digests } = this.platform.store.transact((tx) => {
      const released = releaseHeld(this.platform, tx);
      return { digests: released, attempts: this.take(tx, most) };
    });
    for (const attempt of attempts) this.begin(attempt);
    return { begun: attempts.length, digests };
  };

  /** Waits a few seconds for mails that are on their way, and ends all connections. */
  async stop(): Promise<void> {
    this.isStopped = true;
    const all = () => Promise.all([...this.inFlight.values()].map(({ done }) => done));
    await withTimeout(this.platform.clock, DRAIN_MS, all(), () => []);
    this.transport.close();
    await all();
  }

  /** Returns how many mails may be begun now. */
  private most(): number {
    if (this.isStopped) return 0;
    if (!this.pause) return MAIL_LIMITS.inFlight[0] - this.inFlight.size;
    return this.inFlight.size === 0 && this.platform.clock.monotonic() >= this.pause.until ? 1 : 0;
  }

  /** Takes the most urgent mails first. Less urgent ones leave the last places free, so that a slow server holds up no urgent one. */
  private take(tx: Tx, most: number): Attempt[] {
    const attempts: Attempt[] = [];
    for (const urgency of URGENCIES) {
      if (attempts.length < most) this.takeOf(tx, urgency, most, attempts);
    }
    return attempts;
  }

  private takeOf(tx: Tx, urgency: Urgency, most: number, attempts: Attempt[]): void {
    for (const row of tx.all(due({ now: tx.now, urgency }))) {
      if (attempts.length === most || this.inFlight.size + attempts.length >= MAIL_LIMITS.inFlight[urgency]) return;
      if (this.inFlight.has(row.id) || this.isSenderBusy(row, attempts)) continue;
      const attempt = this.prepare(tx, row);
      if (attempt) attempts.push(attempt);
    }
  }

  /** Tells whether so many of the least urgent mails of one sender are on their way that the others' would wait for them. */
  private isSenderBusy({ urgency, sender }: Place, attempts: readonly Attempt[]): boolean {
    if (urgency !== URGENCIES.at(-1) || sender === null) return false;
    const places: Place[] = [...this.inFlight.values(), ...attempts.map(({ row }) => row)];
    return places.filter((place) => place.sender === sender).length >= MAIL_LIMITS.inFlightOfSender;
  }

  private prepare(tx: Tx, row: MailRow): Attempt | undefined {
    if (row.created_at + MAIL_TRIED_MS <= tx.now) return this.giveUp(tx, row, TOO_LATE);
    if (row.unanswered >= MOST_UNANSWERED) return this.giveUp(tx, row, NOT_ANSWERED);
    const mail = this.compose(tx, row);
    if (!mail) return undefined;
    const until = heldUntil(tx, row);
    if (until !== undefined) {
      holdMail(tx, row, until);
      return undefined;
    }
    const { id, attempts, unanswered } = row;
    const tried = { attempts: attempts + 1, unanswered: unanswered + 1, attempted_at: tx.now };
    tx.run(updateRows('mails', { ...tried, next_attempt_at: tx.now + MAIL_LEASE_MS }, { id }));
    return { row, mail };
  }

  /** Returns the mail; undefined if it is of no use any more, or cannot be made, which ends it. */
  private compose(tx: Tx, row: MailRow): Mail | undefined {
    try {
      const mail = composeMail(this.platform, tx, row);
      if (!mail) finishMail(tx, row.id, 'cancelled');
      return mail;
    } catch (error) {
      if (!(error instanceof UnusableMail)) throw error;
      return this.giveUp(tx, row, error.message);
    }
  }

  private giveUp(tx: Tx, { id, kind }: MailRow, why: string): undefined {
    finishMail(tx, id, 'failed');
    tx.count({ what: 'mail', outcome: 'failed' });
    tx.afterCommit(() => this.logger.error({ mailId: id, kind, why }, 'a mail is given up'));
  }

  private begin(attempt: Attempt): void {
    const { id, urgency, sender } = attempt.row;
    const done = this.transport
      .send(attempt.mail)
      .catch((error: unknown): Delivery => ({ outcome: 'unknown', answer: messageOf(error) }))
      .then((delivery) => {
        this.inFlight.delete(id);
        this.finish(attempt, delivery);
      });
    this.inFlight.set(id, { urgency, sender, done });
  }

  private finish({ row }: Attempt, delivery: Delivery): void {
    const { outcome, answer } = delivery;
    const about = { mailId: row.id, kind: row.kind, outcome, answer };
    this.notePause(outcome);
    this.logger[outcome === 'sent' ? 'info' : 'warn'](about, outcome === 'sent' ? 'mail sent' : 'a mail was not sent');
    try {
      this.platform.store.transact((tx) => this.record(tx, row, outcome));
    } catch (error) {
      // The mail is due again when its lease ends.
      this.logger.error({ ...about, err: error }, 'what became of a mail cannot be recorded');
    }
  }

  private record(tx: Tx, row: MailRow, outcome: Delivery['outcome']): void {
    const { id, attempts, unanswered, attempted_at } = row;
    switch (outcome) {
      case 'sent':
        finishMail(tx, id, 'sent');
        tx.count({ what: 'mail', outcome });
        break;
      case 'rejected':
        this.giveUp(tx, row, REJECTED);
        break;
      case 'postponed':
        this.tryAgain(tx, row, { unanswered });
        break;
      case 'unknown':
        this.tryAgain(tx, row, {});
        break;
      case 'unreachable':
        // No fault of this mail, which is not the first to be tried again: another one might be sent.
        tx.run(
          updateRows('mails', { attempts, unanswered, attempted_at, next_attempt_at: tx.now + MINUTE_MS }, { id }),
        );
    }
    if (outcome !== 'unreachable') tx.nudge('mail');
  }

  private tryAgain(tx: Tx, row: MailRow, changes: { unanswered?: number }): void {
    const at = tx.now + mailRetryMs(row.attempts + 1);
    if (at >= row.created_at + MAIL_TRIED_MS) this.giveUp(tx, row, TOO_LATE);
    else tx.run(updateRows('mails', { ...changes, next_attempt_at: at }, { id: row.id }));
  }

  private notePause(outcome: Delivery['outcome']): void {
    const now = this.platform.clock.monotonic();
    if (outcome !== 'unreachable') this.pause = undefined;
    else if (!this.pause || now >= this.pause.until) {
      const ms = this.pause ? Math.min(2 * this.pause.ms, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
      this.pause = { until: now + ms, ms };
    }
  }
}

const due = compileOnce(({ now, urgency }: { now: number; urgency: number }) =>
  query
    .selectFrom('mails')
    .selectAll()
    .where('state', '=', sql.lit('queued'))
    .where('urgency', '=', urgency)
    .where('next_attempt_at', '<=', now)
    .orderBy('turn')
    .limit(sql.lit(LOOKED_AT)),
);
