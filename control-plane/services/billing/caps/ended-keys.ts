import { DAY_MS, MINUTE_MS } from '../../../../shared/time.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { UNSETTLED } from '../../metering/meters.js';
import type { Core } from '../../system/platform.js';

/** How long a key stays that has ended and that nothing names. */
export const KEPT_MS = DAY_MS;
/** Most keys that one run looks at. */
export const KEYS_A_RUN = 200;
const EVERY_MS = MINUTE_MS;

interface Place {
  revoked_at: number;
  id: string;
}
const START: Place = { revoked_at: 0, id: '' };

/**
 * Makes the function that deletes API keys which were revoked or have expired a day ago, with their caps, unless an instance,
 * a schedule or use that is not charged yet names them:
 * who makes and revokes keys again and again fills no database. It looks at the oldest ones once a minute, and goes on at the next call
 * while there are more. Returns the number deleted.
 */
export function keyPurgerOf({ store, clock }: Pick<Core, 'store' | 'clock'>): () => number {
  let dueAt = 0;
  let from = START;
  const wait = () => {
    dueAt = clock.monotonic() + EVERY_MS;
    return 0;
  };
  return () => {
    if (clock.monotonic() < dueAt) return 0;
    return store.transact((tx) => {
      // A workload in quarantine can become an instance of a key, which only its sealed origin names.
      if (tx.get(anyQuarantined({}))) return wait();
      const ended = tx.all(endedAfter({ ...from, before: tx.now - KEPT_MS }));
      const isAll = ended.length < KEYS_A_RUN;
      // Those that have deployed something stay: the next run must not look at the same ones again.
      from = isAll ? START : placeOf(ended.at(-1));
      if (isAll) wait();
      return ended.filter(({ id }) => forget(tx, id)).length;
    });
  };
}

const anyQuarantined = compileOnce(() => query.selectFrom('quarantine').select('id').limit(sql.lit(1)));

function placeOf(key: Pick<Row<'api_keys'>, 'revoked_at' | 'id'> | undefined): Place {
  return { revoked_at: key?.revoked_at ?? START.revoked_at, id: key?.id ?? START.id };
}

function forget(tx: Tx, id: string): boolean {
  if (!tx.get(unnamed(id))) return false;
  tx.run(query.deleteFrom('spend_caps').where('owner_id', '=', id));
  tx.run(query.deleteFrom('key_days').where('api_key_id', '=', id));
  return tx.run(query.deleteFrom('api_keys').where('id', 'in', unnamed(id))) > 0;
}

/** Returns the query of a key, if nothing names it for which it still counts. */
function unnamed(id: string) {
  return query
    .selectFrom('api_keys')
    .select('id')
    .where('id', '=', id)
    .where(
      sql<boolean>`NOT EXISTS (SELECT 1 FROM instances WHERE instances.api_key_id = api_keys.id LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM instances WHERE run_key_id = api_keys.id LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM instance_schedules WHERE key_id = api_keys.id LIMIT 1)
        AND NOT EXISTS (
          SELECT 1 FROM meter_intervals
          WHERE meter_intervals.organization_id = api_keys.organization_id AND ${UNSETTLED} AND capped_key_id = api_keys.id
          LIMIT 1)`,
    );
}

const endedAfter = compileOnce(({ revoked_at, id, before }: Record<keyof Place | 'before', string | number>) =>
  query
    .selectFrom('api_keys')
    .select(['revoked_at', 'id'])
    .where(sql<boolean>`(revoked_at, id) > (${revoked_at}, ${id})`)
    .where(sql<boolean>`revoked_at <= ${before}`)
    .orderBy('revoked_at')
    .orderBy('id')
    .limit(sql.lit(KEYS_A_RUN)),
);
