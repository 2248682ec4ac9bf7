import { DAY_MS } from '../../../shared/time.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { purgePreviousSecrets } from './secrets.js';

/** How long a delivery stays in the log after its end. */
const KEPT_MS = 30 * DAY_MS;

/** Deletes deliveries that have ended long ago, the oldest first, at most `most`, and previous secrets. Returns the number of both. */
export function purgeWebhooks(tx: Tx, most: number): number {
  const ids = tx.all(endedBefore({ before: tx.now - KEPT_MS, most })).map(({ id }) => id);
  if (ids.length > 0) tx.run(query.deleteFrom('webhook_deliveries').where('id', 'in', ids));
  return ids.length + purgePreviousSecrets(tx);
}

const endedBefore = compileOnce(({ before, most }: { before: number; most: number }) =>
  query
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('finished_at', '<=', before)
    .orderBy('finished_at')
    .limit(most),
);
