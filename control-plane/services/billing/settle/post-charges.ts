import { HOUR_MS } from '../../../../shared/time.js';
import type { Settlement } from '../../../domain/money/settlement.js';
import { compileOnce, listIn, sql, statement } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { UNSETTLED } from '../../metering/meters.js';
import { addToDays, type ChargedInstance } from './charge-days.js';

/**
 * Writes settlements, by organization: intervals, ledger rows, spending of instances, balances, and the time of the next settlement.
 * A charge goes into the ledger row of its instance, meter and UTC hour of posting. The present hour's row grows; the row of an
 * earlier hour never changes, not even when the clock is set back. Sums by day of use are kept beside the ledger.
 */
export function postCharges(tx: Tx, settlements: ReadonlyMap<string, Settlement>): void {
  const all = [...settlements];
  const intervals = all.flatMap(([, settlement]) => settlement.intervals);
  const bookings = all.flatMap(([organizationId, settlement]) =>
    settlement.bookings.map((booking) => ({ ...booking, organizationId, id: tx.id() })),
  );
  const charged = bookings.filter(({ chargedMicro }) => chargedMicro > 0);
  if (intervals.length > 0) moveIntervals(tx, intervals);
  const instances = bookings.length > 0 ? addToInstances(tx, bookings) : [];
  if (charged.length > 0) {
    addToLedger(tx, charged);
    addToDays(tx, charged, instances);
  }
  forgetEntries(tx, [...settlements.keys()]);
  updateBalances(
    tx,
    all.map(([id, { bookings: its, nextAt }]) => ({
      id,
      chargedMicro: its.reduce((sum, { chargedMicro }) => sum + chargedMicro, 0),
      nextAt,
    })),
  );
}

type Booking = Settlement['bookings'][number] & { organizationId: string; id: string };

function moveIntervals(tx: Tx, intervals: Settlement['intervals']): void {
  tx.run(moving({ intervals: JSON.stringify(intervals) }));
}

const moving = compileOnce(({ intervals }: { intervals: string }) =>
  statement(sql`
    UPDATE meter_intervals SET
      settled_to = json_extract(value, '$.settledTo'),
      attested_to = max(attested_to, json_extract(value, '$.settledTo')),
      written_off_ms = written_off_ms + json_extract(value, '$.absorbedMs'),
      written_off_micro = written_off_micro + json_extract(value, '$.absorbedMicro')
    FROM json_each(${intervals}) WHERE meter_intervals.id = json_extract(value, '$.id')`),
);

/** Returns what the charges of each instance are added up by: to read that here spares another search. */
function addToInstances(tx: Tx, bookings: readonly Booking[]): ChargedInstance[] {
  const its = new Map<string, { instanceId: string; gpu: number; disk: number; chargedMicro: number }>();
  for (const { instanceId, meter, ms, chargedMicro } of bookings) {
    const sum = its.get(instanceId) ?? { instanceId, gpu: 0, disk: 0, chargedMicro: 0 };
    its.set(instanceId, { ...sum, [meter]: ms, chargedMicro: sum.chargedMicro + chargedMicro });
  }
  return tx.all(addingToInstances({ sums: JSON.stringify([...its.values()]) }));
}

const addingToInstances = compileOnce(({ sums }: { sums: string }) =>
  statement<ChargedInstance>(sql`
    UPDATE instances SET
      gpu_settled_ms = gpu_settled_ms + json_extract(value, '$.gpu'),
      disk_settled_ms = disk_settled_ms + json_extract(value, '$.disk'),
      spend_micro = spend_micro + json_extract(value, '$.chargedMicro')
    FROM json_each(${sums}) WHERE instances.id = json_extract(value, '$.instanceId')
    RETURNING id, machine_id, template_id, api_key_id, deployed_by, label`),
);

function addToLedger(tx: Tx, bookings: readonly Booking[]): void {
  const hour = tx.now - (tx.now % HOUR_MS);
  tx.run(addingToLedger({ hour, now: tx.now, bookings: JSON.stringify(bookings) }));
}

const addingToLedger = compileOnce(({ hour, now, bookings }: { hour: number; now: number; bookings: string }) =>
  statement(sql`
    INSERT INTO transactions (id, organization_id, kind, amount_micro, instance_id, meter, hour, created_at)
    SELECT
      json_extract(value, '$.id'), json_extract(value, '$.organizationId'), 'charge',
      -json_extract(value, '$.chargedMicro'), json_extract(value, '$.instanceId'), json_extract(value, '$.meter'),
      max(${hour}, coalesce((
        SELECT max(hour) FROM transactions
        WHERE instance_id = json_extract(value, '$.instanceId') AND meter = json_extract(value, '$.meter')), 0)),
      ${now}
    FROM json_each(${bookings}) WHERE true
    ON CONFLICT (instance_id, meter, hour) DO UPDATE SET amount_micro = amount_micro + excluded.amount_micro`),
);

/** Deletes entries that no settlement needs any more, because all time before them is settled. */
function forgetEntries(tx: Tx, organizations: readonly string[]): void {
  tx.run(deletingEntries({ ids: JSON.stringify(organizations) }));
}

const deletingEntries = compileOnce(({ ids }: { ids: string }) =>
  statement(sql`
    DELETE FROM recent_entries
    WHERE organization_id IN ${listIn(ids)} AND NOT EXISTS (
      SELECT 1 FROM meter_intervals
      WHERE meter_intervals.organization_id = recent_entries.organization_id AND ${UNSETTLED}
        AND settled_to < recent_entries.at)`),
);

function updateBalances(tx: Tx, rows: readonly { id: string; chargedMicro: number; nextAt: number | null }[]): void {
  tx.run(charging({ rows: JSON.stringify(rows) }));
}

const charging = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    UPDATE organizations SET
      balance_micro = balance_micro - json_extract(value, '$.chargedMicro'),
      settle_at = json_extract(value, '$.nextAt')
    FROM json_each(${rows}) WHERE organizations.id = json_extract(value, '$.id')`),
);
