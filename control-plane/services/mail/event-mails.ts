import { DAY_MS } from '../../../shared/time.js';
import type { Role } from '../../domain/caller.js';
import { eventId, type EventData } from '../../domain/event.js';
import { MAIL_LIMITS, categoryOf, isChoice, type MailItem } from '../../domain/mail/mail.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, rowById, sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Core } from '../system/platform.js';
import { queueMail } from './outbox.js';
import { isSwitchedOff } from './preferences.js';

/** Streams that are looked at in one run, and events of each. */
const STREAMS_A_RUN = 100;
const EVENTS_A_RUN = 10;
/** An older event is not mailed: the mail was off, or the control plane was. */
const FRESH_MS = DAY_MS;

type MailedType =
  | 'billing.balance_low'
  | 'billing.balance_exhausted'
  | 'billing.disks_at_risk'
  | 'billing.paid'
  | 'billing.payment_failed'
  | 'billing.spend_cap'
  | 'organization.suspended'
  | 'organization.restored'
  | 'organization.disks_at_risk'
  | 'machine.notice';

/** What a mail says of an event, besides its organization; and who is told: all who can do something about it, or those who can pay. */
const MAILED: { readonly [Type in MailedType]: { to: readonly Role[]; read: (data: EventData[Type]) => Told } } = {
  'billing.balance_low': {
    to: ['admin', 'billing', 'member'],
    read: ({ balance_micro, lasts_until, hours }) => ({
      kind: 'balance_low',
      balance_micro,
      lasts_until: Date.parse(lasts_until),
      hours,
    }),
  },
  'billing.balance_exhausted': {
    to: ['admin', 'billing', 'member'],
    read: ({ balance_micro }) => ({ kind: 'balance_exhausted', balance_micro }),
  },
  'billing.disks_at_risk': {
    to: ['admin', 'billing', 'member'],
    read: ({ balance_micro, destroyed_at, hours, instances }) => ({
      kind: 'disks_at_risk',
      balance_micro,
      destroyed_at: Date.parse(destroyed_at),
      hours,
      instances,
    }),
  },
  'billing.paid': {
    to: ['admin', 'billing'],
    read: ({ amount_micro, balance_micro }) => ({ kind: 'paid', amount_micro, balance_micro }),
  },
  'billing.payment_failed': {
    to: ['admin', 'billing'],
    read: ({ amount_micro, balance_micro }) => ({ kind: 'payment_failed', amount_micro, balance_micro }),
  },
  'billing.spend_cap': {
    to: ['admin', 'billing', 'member'],
    read: ({ api_key_id, period, percent, limit_micro, spent_micro }) => ({
      kind: 'spend_cap',
      api_key_id,
      period,
      percent,
      limit_micro,
      spent_micro,
    }),
  },
  'organization.suspended': {
    to: ['admin', 'billing', 'member'],
    read: ({ reason, disks_kept_until }) => ({
      kind: 'suspended',
      reason,
      disks_kept_until: Date.parse(disks_kept_until),
    }),
  },
  'organization.restored': {
    to: ['admin', 'billing', 'member'],
    read: ({ reason }) => ({ kind: 'restored', reason }),
  },
  'organization.disks_at_risk': {
    to: ['admin', 'billing', 'member'],
    read: ({ reason, destroyed_at, hours, instances }) => ({
      kind: 'suspended_disks',
      reason,
      destroyed_at: Date.parse(destroyed_at),
      hours,
      instances,
    }),
  },
  'machine.notice': {
    to: ['admin', 'billing', 'member'],
    read: ({ machine_name: machine, message, instance_ids }) => ({
      kind: 'notice',
      machine,
      message,
      instances: instance_ids.length,
    }),
  },
};

type ItemOfEvent = Extract<MailItem, { organization_id: string }>;
type Told = ItemOfEvent extends infer Item
  ? Item extends ItemOfEvent
    ? Omit<Item, keyof OfOrganization>
    : never
  : never;
interface OfOrganization {
  organization_id: string;
  organization: string;
}

/** The types of events that lead to mails. The index `events_for_mail` has exactly these. */
export const MAILED_TYPES = Object.keys(MAILED) as MailedType[];

/**
 * Makes the worker that turns new events into mails to the members whom they concern, each event once. It looks at streams with new events
 * of these types, and after the start, a few in each run, at all that have such events: from where it was in each. It returns the
 * number of mails.
 */
export function mailMakerOf(core: Core): () => { made: number } {
  const changed = new Set<string>();
  /** Up to where the walk after the start has come; undefined: it is over. */
  let walkedTo: string | undefined = '';
  core.store.onChange('events', (stream, type) => {
    if (type in MAILED) changed.add(stream);
  });
  return () => {
    walkedTo = walkedTo === undefined ? undefined : walk(core, walkedTo, changed);
    const streams = [...changed].slice(0, STREAMS_A_RUN);
    // One that fails comes last at its next turn.
    for (const stream of streams) changed.delete(stream);
    let made = 0;
    const mailNew = (tx: Tx, stream: string) => {
      const done = mailEventsOf(core, tx, stream);
      made += done.made;
      if (done.isMore) changed.add(stream);
    };
    forEachInOwnTransaction(core, streams, mailNew, (_tx, stream) => changed.add(stream));
    return { made };
  };
}

/** Adds the next streams with events for mails to `found`. Returns where to go on; undefined: there are no more. */
function walk({ store }: Core, from: string, found: Set<string>): string | undefined {
  return store.transact((tx) => {
    let at = from;
    for (let looked = 0; looked < STREAMS_A_RUN; looked++) {
      const next = tx.get(streamAfter({ stream: at }));
      if (!next) return undefined;
      at = next.stream;
      found.add(at);
    }
    return at;
  });
}

function mailEventsOf(core: Core, tx: Tx, stream: string): { made: number; isMore: boolean } {
  const position = query.selectFrom('mail_positions').select('number').where('stream', '=', stream);
  const events = tx.all(eventsForMail({ stream, number: tx.get(position)?.number ?? 0 }));
  const last = events.at(-1);
  if (!last) return { made: 0, isMore: false };
  const fresh = events.filter(({ at }) => at > tx.now - FRESH_MS);
  const made = fresh.reduce((sum, event) => sum + mailEvent(core, tx, event), 0);
  tx.run(movedTo({ stream, number: last.number }));
  return { made, isMore: events.length === EVENTS_A_RUN };
}

type EventRow = Pick<Row<'events'>, 'stream' | 'number' | 'epoch' | 'at' | 'data'> & { type: MailedType };

function mailEvent(core: Core, tx: Tx, event: EventRow): number {
  const organization = tx.get(rowById('organizations', event.stream));
  if (!organization) return 0;
  const { to, read } = MAILED[event.type] as { to: readonly Role[]; read: (data: unknown) => Told };
  const told = read(JSON.parse(event.data));
  const item: ItemOfEvent = { ...told, organization_id: organization.id, organization: organization.name };
  const category = categoryOf(item);
  const about = `event ${event.stream}/${eventId(event)}`;
  const people = to.flatMap((role) => tx.all(membersWith({ organizationId: organization.id, role })));
  let made = 0;
  for (const { id, email } of people.slice(0, MAIL_LIMITS.membersTold)) {
    if (isChoice(category) && isSwitchedOff(tx, id, category)) continue;
    const mail = { userId: id, address: email, organizationId: null, about, item, sender: organization.id };
    made += Number(queueMail(core, tx, mail));
  }
  return made;
}

const types = sql.join(MAILED_TYPES.map((type) => sql.lit(type)));

/** Both name their index: SQLite would also find the rows by the key of the table, and read all other events on the way. */
const eventsForMail = compileOnce(({ stream, number }: { stream: string; number: number }) =>
  statement<EventRow>(sql`
    SELECT stream, number, epoch, at, type, data FROM events INDEXED BY events_for_mail
    WHERE type IN (${types}) AND stream = ${stream} AND number > ${number}
    ORDER BY number LIMIT ${sql.lit(EVENTS_A_RUN)}`),
);

const streamAfter = compileOnce(({ stream }: { stream: string }) =>
  statement<{ stream: string }>(sql`
    SELECT stream FROM events INDEXED BY events_for_mail
    WHERE type IN (${types}) AND stream > ${stream} ORDER BY stream LIMIT 1`),
);

const movedTo = compileOnce(({ stream, number }: { stream: string; number: number }) =>
  query
    .insertInto('mail_positions')
    .values({ stream, number })
    .onConflict((conflict) => conflict.column('stream').doUpdateSet({ number })),
);

const membersWith = compileOnce(({ organizationId, role }: { organizationId: string; role: string }) =>
  query
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .select(['users.id', 'users.email'])
    .where('memberships.organization_id', '=', organizationId)
    .where('memberships.role', '=', role as Role)
    .orderBy('memberships.joined_at')
    .orderBy('memberships.user_id')
    .limit(sql.lit(MAIL_LIMITS.membersTold)),
);
