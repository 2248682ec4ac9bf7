import { DAY_MS, MINUTE_MS } from '../../../shared/time.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Core } from '../system/platform.js';
import { newestNumber } from './read.js';
import { noteExpired } from './record.js';

/** How long events are kept that belong to no instance. */
export const KEPT_MS = 30 * DAY_MS;
/** Most events that one run looks at. */
export const MOST_PURGED = 500;
const EVERY_MS = MINUTE_MS;

type Place = Pick<Row<'events'>, 'at' | 'stream' | 'number'>;
const START: Place = { at: 0, stream: '', number: 0 };

/**
 * Makes the function that deletes events which belong to no instance and are older than 30 days, but never the newest of a stream, from
 * which the next number follows. It looks at the oldest ones once a minute, and goes on at the next call while there are more. Returns
 * the number deleted.
 */
export function eventPurgerOf({ store, clock }: Pick<Core, 'store' | 'clock'>): () => number {
  let dueAt = 0;
  let from = START;
  return () => {
    if (clock.monotonic() < dueAt) return 0;
    return store.transact((tx) => {
      const old = tx.all(oldAfter({ ...from, before: tx.now - KEPT_MS }));
      const isAll = old.length < MOST_PURGED;
      // The newest events of quiet streams stay: the next run must not look at the same ones again.
      from = isAll ? START : (old.at(-1) ?? START);
      if (isAll) dueAt = clock.monotonic() + EVERY_MS;
      return old.filter((event) => purge(tx, event)).length;
    });
  };
}

function purge(tx: Tx, { stream, number }: Place): boolean {
  if (number === newestNumber(tx, stream)) return false;
  tx.run(removed({ stream, number }));
  noteExpired(tx, stream, number);
  return true;
}

const oldAfter = compileOnce(({ at, stream, number, before }: Record<keyof Place | 'before', string | number>) =>
  query
    .selectFrom('events')
    .select(['at', 'stream', 'number'])
    .where('instance_id', 'is', null)
    .where(sql<boolean>`(at, stream, number) > (${at}, ${stream}, ${number})`)
    .where(sql<boolean>`at <= ${before}`)
    .orderBy('at')
    .orderBy('stream')
    .orderBy('number')
    .limit(sql.lit(MOST_PURGED)),
);

const removed = compileOnce(({ stream, number }: { stream: string; number: number }) =>
  query.deleteFrom('events').where('stream', '=', stream).where('number', '=', number),
);
