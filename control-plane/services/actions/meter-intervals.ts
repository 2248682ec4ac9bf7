import type { Caller } from '../../domain/caller.js';
import type { Meter } from '../../domain/money/money.js';
import { query, sql } from '../../store/sql.js';
import { getOwnInstance } from '../instances/queries.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core } from '../system/platform.js';

/** A time that one meter of an instance was open, in milliseconds since 1970. */
export interface MeterInterval {
  id: number;
  meter: Meter;
  began_at: number;
  /** Null while it is open. */
  ended_at: number | null;
  /** How much of it is charged so far. */
  charged_ms: number;
  /** What of the price of its last charged millisecond the balance or a limit did not cover, in micro-dollars. */
  uncovered_micro: number;
}

const NEWEST_FIRST = { by: { id: 'desc' }, keyOf: ({ id }: MeterInterval) => [id] } as const;

/** Lists the times on which the charges of an instance rest, newest first. Refuses with INSTANCE_NOT_FOUND. */
export function listMeterIntervals(
  core: Core,
  caller: Caller,
  instanceId: string,
  request: PageRequest,
): Page<MeterInterval> {
  return core.store.transact((tx) => {
    const { id } = getOwnInstance(tx, caller, instanceId);
    const its = query
      .selectFrom('meter_intervals')
      .where('instance_id', '=', id)
      .select([
        'id',
        'meter',
        'opened_at as began_at',
        'closed_at as ended_at',
        sql<number>`settled_to - opened_at - written_off_ms`.as('charged_ms'),
        'written_off_micro as uncovered_micro',
      ]);
    return pageOf(tx, its, request, NEWEST_FIRST);
  });
}
