import {
  latestOccurrence,
  nextOccurrence,
  type Occurrence,
  type ScheduleEntry,
  type ZoneOffset,
} from '../../domain/instances/schedule.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { readStoredList } from '../../store/stored-json.js';
import { findZone } from '../system/time-zones.js';

export type ScheduleRow = Row<'instance_schedules'>;

/** When the instances are started and stopped, in which zone. */
export interface Schedule {
  entries: ScheduleEntry[];
  zone: ZoneOffset;
}

const NO_ENTRY: ScheduleEntry = { action: 'stop', days: [], at: '00:00' };

export function entriesOf({ entries }: Pick<ScheduleRow, 'entries'>): ScheduleEntry[] {
  return readStoredList(NO_ENTRY, JSON.parse(entries));
}

/** Returns the schedule of a row; undefined: this release does not know its time zone. */
export function scheduleOf(row: Pick<ScheduleRow, 'time_zone' | 'entries'>): Schedule | undefined {
  const zone = findZone(row.time_zone);
  return zone && { entries: entriesOf(row), zone };
}

/** Returns the newest action that is due at `now` and not dealt with; undefined: none is. Older ones are not carried out any more. */
export function dueOf(
  { entries, zone }: Schedule,
  { next_at }: Pick<ScheduleRow, 'next_at'>,
  now: number,
): Occurrence | undefined {
  if (next_at > now) return undefined;
  const latest = latestOccurrence(entries, zone, now);
  return latest.at >= next_at ? latest : undefined;
}

/** Returns when the first action of a schedule after a time is due. */
export function nextAfter({ entries, zone }: Schedule, after: number): number {
  return nextOccurrence(entries, zone, after).at;
}

/** Returns the schedule of an instance, which has at most one. */
export function findScheduleRow(tx: Tx, instanceId: string): ScheduleRow | undefined {
  return tx.get(ofInstance({ instanceId }));
}

const ofInstance = compileOnce(({ instanceId }: { instanceId: string }) =>
  query.selectFrom('instance_schedules').selectAll().where('instance_id', '=', instanceId),
);

/** Returns the schedules that a worker must look at by now, those that have waited longest first: at most `most`. */
export function schedulesToLookAt(tx: Tx, most: number): ScheduleRow[] {
  return tx.all(toLookAt({ now: tx.now, most }));
}

const toLookAt = compileOnce(({ now, most }: { now: number; most: number }) =>
  query.selectFrom('instance_schedules').selectAll().where('look_at', '<=', now).orderBy('look_at').limit(most),
);

/** Writes the schedule of an instance, in the place of an earlier one. */
export function writeSchedule(tx: Tx, row: ScheduleRow): void {
  const { instance_id: _, ...changes } = row;
  tx.run(
    query
      .insertInto('instance_schedules')
      .values(row)
      .onConflict((conflict) => conflict.column('instance_id').doUpdateSet(changes)),
  );
}

export function changeSchedule(tx: Tx, instanceId: string, changes: Partial<Omit<ScheduleRow, 'instance_id'>>): void {
  tx.run(updateRows('instance_schedules', changes, { instance_id: instanceId }));
}

/** Deletes the schedule of an instance, if it has one. A start that it has begun goes on. */
export function dropSchedule(tx: Tx, instanceId: string): void {
  tx.run(dropping({ instanceId }));
}

const dropping = compileOnce(({ instanceId }: { instanceId: string }) =>
  query.deleteFrom('instance_schedules').where('instance_id', '=', instanceId),
);

/** Makes the worker look at every schedule again, because the clock or the time zones have changed. */
export function lookAtSchedulesAgain(tx: Tx): void {
  tx.run(query.updateTable('instance_schedules').set({ look_at: sql.lit(0) }));
}
