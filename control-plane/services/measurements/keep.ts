import { summarize } from '../../../shared/measurement.js';
import {
  KEPT_MS,
  SPAN_OF_ROW_MS,
  mergeUses,
  packUses,
  rowOf,
  unpackUses,
  type Grain,
  type TimedUse,
} from '../../domain/instances/measurement.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Core } from '../system/platform.js';
import type { HasMeasurements } from './memory.js';

/** Most instances, and most rows that expire, in one run: a transaction of about ten milliseconds, for 60,000 instances. */
const MOST_INSTANCES = 100;
const MOST_ROWS = 50;

/**
 * Writes the minutes of instances that have waited for ten minutes, makes hours of those that are older than a day, and deletes hours
 * that are older than 90 days. Returns the numbers of instances, of rows that became hours, and of rows deleted.
 */
export function keepMeasurements(core: Core & HasMeasurements): {
  written: number;
  summarized: number;
  expired: number;
} {
  const due = core.measurements.due(MOST_INSTANCES);
  return core.store.transact((tx) => {
    for (const instanceId of due) writeWaiting(core, tx, instanceId);
    return { written: due.length, summarized: summarizeOld(tx), expired: deleteOld(tx) };
  });
}

/** Writes all minutes that wait, before the control plane stops. */
export function writeMeasurements(core: Core & HasMeasurements): void {
  const waiting = core.measurements.all();
  if (waiting.length === 0) return;
  core.store.transact((tx) => {
    for (const instanceId of waiting) writeWaiting(core, tx, instanceId);
  });
}

function writeWaiting({ measurements: memory }: HasMeasurements, tx: Tx, instanceId: string): void {
  addUses(tx, instanceId, 'minute', memory.of(instanceId));
  tx.afterCommit(() => memory.drop(instanceId));
}

/** Adds uses to the rows that they belong to. */
function addUses(tx: Tx, instanceId: string, grain: Grain, uses: readonly TimedUse[]): void {
  for (const from of new Set(uses.map(({ at }) => rowOf(grain, at)))) {
    const row = { instanceId, grain, from };
    const kept = tx.get(rowAt(row));
    const added = uses.filter(({ at }) => rowOf(grain, at) === from);
    tx.run(putRow({ ...row, data: packUses(mergeUses(kept ? unpackUses(kept.data) : [], added)) }));
  }
}

/** Makes an hour of each row of minutes that nobody can read any more. */
function summarizeOld(tx: Tx): number {
  const before = tx.now - KEPT_MS.minute - SPAN_OF_ROW_MS.minute;
  const rows = tx.all(oldRows({ grain: 'minute', before }));
  for (const row of rows) {
    addUses(tx, row.instance_id, 'hour', hoursOf(unpackUses(row.data)));
    tx.run(removed({ instanceId: row.instance_id, grain: 'minute', from: row.from_at }));
  }
  return rows.length;
}

function deleteOld(tx: Tx): number {
  const before = tx.now - KEPT_MS.hour - SPAN_OF_ROW_MS.hour;
  const rows = tx.all(oldRows({ grain: 'hour', before }));
  for (const row of rows) tx.run(removed({ instanceId: row.instance_id, grain: 'hour', from: row.from_at }));
  return rows.length;
}

/** Returns one use for each hour in which there are minutes; `at`: the end of the hour. */
export function hoursOf(minutes: readonly TimedUse[]): TimedUse[] {
  const hours = new Map<number, TimedUse[]>();
  for (const minute of minutes) {
    const from = rowOf('minute', minute.at);
    hours.set(from, [...(hours.get(from) ?? []), minute]);
  }
  return [...hours].map(([from, list]) => ({
    at: from + SPAN_OF_ROW_MS.minute,
    use: summarize(list.map(({ use }) => use)),
  }));
}

/** Returns the stored uses of an instance in the rows that end after `since`, the oldest first. */
export function storedUses(tx: Tx, instanceId: string, grain: Grain, since: number): TimedUse[] {
  const rows = tx.all(rowsSince({ instanceId, grain, since: since - SPAN_OF_ROW_MS[grain] }));
  return rows.flatMap(({ data }) => unpackUses(data));
}

interface Place {
  instanceId: string;
  grain: Grain;
  from: number;
}

const rowAt = compileOnce(({ instanceId, grain, from }: Place & Record<string, string | number>) =>
  query
    .selectFrom('measurements')
    .select('data')
    .where('instance_id', '=', instanceId)
    .where('grain', '=', grain)
    .where('from_at', '=', from),
);

const putRow = compileOnce(
  ({ instanceId, grain, from, data }: Place & { data: Buffer } & Record<string, string | number | Buffer>) =>
    query
      .insertInto('measurements')
      .values({ instance_id: instanceId, grain, from_at: from, data })
      .onConflict((conflict) =>
        conflict.columns(['instance_id', 'grain', 'from_at']).doUpdateSet({ data: sql<Buffer>`excluded.data` }),
      ),
);

const removed = compileOnce(({ instanceId, grain, from }: Place & Record<string, string | number>) =>
  query
    .deleteFrom('measurements')
    .where('instance_id', '=', instanceId)
    .where('grain', '=', grain)
    .where('from_at', '=', from),
);

const oldRows = compileOnce(({ grain, before }: { grain: Grain; before: number }) =>
  query
    .selectFrom('measurements')
    .select(['instance_id', 'from_at', 'data'])
    .where('grain', '=', grain)
    .where('from_at', '<=', before)
    .orderBy('from_at')
    .limit(sql.lit(MOST_ROWS)),
);

const rowsSince = compileOnce(({ instanceId, grain, since }: { instanceId: string; grain: Grain; since: number }) =>
  query
    .selectFrom('measurements')
    .select('data')
    .where('instance_id', '=', instanceId)
    .where('grain', '=', grain)
    .where('from_at', '>', since)
    .orderBy('from_at'),
);
