import { Refusal } from '../../../domain/refusal.js';
import type { Settlement } from '../../../domain/money/settlement.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, insertRow, listIn, query, sql, statement } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { UNSETTLED } from '../../metering/meters.js';

export type EarlierLimitRow = Row<'earlier_limits'>;

/** Most earlier values of the limits of one instance, or of the caps of an organization or an API key. */
const MOST_EARLIER = 50;

/**
 * Keeps a limit that is changed or taken away now, for time before that which its hosts report later. Refuses with INVALID_STATE if 50
 * earlier ones are kept: each is forgotten once all time before its end is charged.
 */
export function keepEarlierLimit(tx: Tx, limit: Omit<EarlierLimitRow, 'id' | 'until_at'>): void {
  if (limit.from_at >= tx.now) return;
  const isFull = () => countEarlier(tx, limit) >= MOST_EARLIER;
  // Settlements forget them, but only where something is metered.
  if (isFull()) tx.run(forgetting({ ids: JSON.stringify([limit.organization_id]) }));
  if (isFull())
    throw new Refusal(
      'INVALID_STATE',
      `limits were changed ${MOST_EARLIER} times since a host has last reported; try again once it has, or stop the instance`,
    );
  tx.run(insertRow('earlier_limits', { ...limit, until_at: tx.now }));
}

function countEarlier(
  tx: Tx,
  { organization_id, limited_id }: Pick<EarlierLimitRow, 'organization_id' | 'limited_id'>,
): number {
  return tx.get(countOf({ organization_id, limited_id }))?.count ?? 0;
}

const countOf = compileOnce(({ organization_id, limited_id }: { organization_id: string; limited_id: string }) =>
  query
    .selectFrom('earlier_limits')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('organization_id', '=', organization_id)
    .where('limited_id', '=', limited_id),
);

/** Returns the earlier limits and caps that are kept for some organizations, the oldest first. */
export function findEarlierLimits(tx: Tx, organizations: readonly string[]): EarlierLimitRow[] {
  return tx.all(earlierOf({ ids: JSON.stringify(organizations) })).sort((a, b) => a.id - b.id);
}

const earlierOf = compileOnce(({ ids }: { ids: string }) =>
  query.selectFrom('earlier_limits').selectAll().where('organization_id', 'in', listIn(ids)),
);

/** Counts what settlements charge for earlier limits, and forgets those for which no time is left that could be charged. */
export function settleEarlierLimits(tx: Tx, settlements: ReadonlyMap<string, Settlement>): void {
  const charged = [...settlements.values()].flatMap(({ earlier }) => earlier);
  if (charged.length > 0) tx.run(counting({ charged: JSON.stringify(charged) }));
  tx.run(forgetting({ ids: JSON.stringify([...settlements.keys()]) }));
}

const counting = compileOnce(({ charged }: { charged: string }) =>
  statement(sql`
    UPDATE earlier_limits SET spent_micro = spent_micro + json_extract(value, '$.chargedMicro')
    FROM json_each(${charged}) WHERE earlier_limits.id = json_extract(value, '$.rowId')`),
);

/** A run that its host has not reported yet belongs to an instance with an open command, and began in its charge window. */
const forgetting = compileOnce(({ ids }: { ids: string }) =>
  statement(sql`
    DELETE FROM earlier_limits WHERE organization_id IN ${listIn(ids)}
      AND NOT EXISTS (
        SELECT 1 FROM meter_intervals
        WHERE meter_intervals.organization_id = earlier_limits.organization_id AND ${UNSETTLED} AND settled_to < until_at
          AND (kind NOT IN ('stop_at', 'max_charge') OR instance_id = limited_id))
      AND NOT EXISTS (
        SELECT 1 FROM instances JOIN commands
          ON commands.machine_id = instances.machine_id AND commands.instance_id = instances.id AND commands.state = 'open'
        WHERE instances.organization_id = earlier_limits.organization_id AND instances.status <> 'destroyed'
          AND charge_from < until_at AND (earlier_limits.kind NOT IN ('stop_at', 'max_charge') OR instances.id = limited_id))`),
);
