import { HOUR_MS } from '../../../shared/time.js';
import { MAIL_LIMITS, itemsOf } from '../../domain/mail/mail.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Core, Platform } from '../system/platform.js';
import { LINKS, contentOf, finishMail, insertMail, type MailRow } from './outbox.js';

/** Queues whose held mails are released in one run. */
const QUEUES_A_RUN = 20;

/**
 * Returns when this mail may be sent: undefined now, unless its person has got {@link MAIL_LIMITS}.perHour others in the last hour. Mails
 * with links have bounds of their own where they are asked for: those of strangers must not hold up that of the address's owner.
 */
export function heldUntil(tx: Tx, { id, queue, kind }: MailRow): number | undefined {
  if (LINKS.includes(kind)) return undefined;
  const since = tx.now - HOUR_MS;
  const others = tx.all(lastSentIn({ queue, since, id }));
  const first = others[MAIL_LIMITS.perHour - 1];
  return first?.attempted_at == null ? undefined : first.attempted_at + HOUR_MS;
}

/** Lets a mail wait for others that came first. */
export function holdMail(tx: Tx, { id }: MailRow, until: number): void {
  tx.run(updateRows('mails', { state: 'held', next_attempt_at: until }, { id }));
}

/**
 * Releases held mails that have waited long enough: one alone as it is, several for the same person as one digest. Returns the number of
 * digests.
 */
export function releaseHeld({ encryption }: Pick<Core, 'encryption'>, tx: Tx): number {
  const queues = new Set(tx.all(heldBefore({ now: tx.now })).map(({ queue }) => queue));
  let digests = 0;
  for (const queue of queues) {
    const readable = tx.all(heldIn({ queue })).filter((mail) => isReadable(encryption, tx, mail));
    const held = readable.sort((one, other) => one.created_at - other.created_at);
    const [first] = held;
    if (!first) continue;
    if (held.length === 1) tx.run(updateRows('mails', { state: 'queued', next_attempt_at: tx.now }, { id: first.id }));
    else {
      digest(encryption, tx, first, held);
      digests += 1;
    }
  }
  return digests;
}

/** Tells whether a mail can be decrypted; gives it up if not, so that it holds up no others. */
function isReadable(encryption: Platform['encryption'], tx: Tx, mail: MailRow): boolean {
  try {
    contentOf(encryption, mail);
    return true;
  } catch {
    finishMail(tx, mail.id, 'failed');
    return false;
  }
}

function digest(encryption: Platform['encryption'], tx: Tx, first: MailRow, held: readonly MailRow[]): void {
  const contents = held.map((mail) => contentOf(encryption, mail));
  const items = contents.flatMap(itemsOf);
  const wasCut = contents.some((content) => content.kind === 'digest' && content.isCut);
  const isCut = wasCut || held.length >= MAIL_LIMITS.waiting || items.length > MAIL_LIMITS.waiting;
  const { user_id, address, queue } = first;
  const whose = { user_id, address, organization_id: null, queue, sender: null };
  for (const { id } of held) finishMail(tx, id, 'in_digest');
  const content = { kind: 'digest' as const, items: items.slice(0, MAIL_LIMITS.waiting), isCut };
  insertMail(encryption, tx, { ...whose, about: `digest ${tx.id()}`, kind: 'digest' }, content);
}

const lastSentIn = compileOnce(({ queue, since, id }: { queue: string; since: number; id: string }) =>
  query
    .selectFrom('mails')
    .select('attempted_at')
    .where('queue', '=', queue)
    .where('attempted_at', '>', since)
    .where('id', '<>', id)
    .orderBy('attempted_at', 'desc')
    .limit(sql.lit(MAIL_LIMITS.perHour)),
);

const heldBefore = compileOnce(({ now }: { now: number }) =>
  query
    .selectFrom('mails')
    .select('queue')
    .where('state', '=', sql.lit('held'))
    .where('next_attempt_at', '<=', now)
    .orderBy('next_attempt_at')
    .limit(sql.lit(QUEUES_A_RUN)),
);

const heldIn = compileOnce(({ queue }: { queue: string }) =>
  query
    .selectFrom('mails')
    .selectAll()
    .where('queue', '=', queue)
    .where('finished_at', 'is', null)
    .where('state', '=', sql.lit('held')),
);
