import { actorOf } from '../../domain/act.js';
import { keyIdOf, type Caller } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import {
  findContradiction,
  nextOccurrence,
  type Occurrence,
  type ScheduleEntry,
} from '../../domain/instances/schedule.js';
import type { Tx } from '../../store/store.js';
import { getOwnInstance, type Instance } from '../instances/queries.js';
import {
  dropSchedule,
  dueOf,
  entriesOf,
  findScheduleRow,
  nextAfter,
  scheduleOf,
  writeSchedule,
  type Schedule,
  type ScheduleRow,
} from '../instances/schedules.js';
import { recordAct } from '../system/acts.js';
import type { Core } from '../system/platform.js';
import { findZone } from '../system/time-zones.js';

export interface ScheduleRequest {
  /** A name of the IANA database. */
  time_zone: string;
  entries: ScheduleEntry[];
}

export interface ScheduleDetails {
  /** Null: the instance has no schedule. */
  time_zone: string | null;
  entries: ScheduleEntry[];
  /** What it does next. Null: the instance has no schedule, or this release does not know its time zone. */
  next: Occurrence | null;
}

/** Returns the schedule of an instance. Refuses with INSTANCE_NOT_FOUND. */
export function getSchedule(core: Core, caller: Caller, id: string): ScheduleDetails {
  return core.store.transact((tx) => {
    getOwnInstance(tx, caller, id);
    const row = findScheduleRow(tx, id);
    return row ? describe(tx, row) : { time_zone: null, entries: [], next: null };
  });
}

/**
 * Gives an instance a schedule, in the place of an earlier one. What is due and was not carried out yet is still carried out if the new
 * schedule has it, too. The runs that it starts count for the caps of the API key that has set it. Refuses with INSTANCE_NOT_FOUND,
 * INVALID_STATE, and VALIDATION_FAILED for an unknown time zone and for entries that start and stop at the same time of a day.
 */
export function replaceSchedule(
  core: Core,
  caller: Caller,
  id: string,
  { time_zone, entries }: ScheduleRequest,
): ScheduleDetails {
  return core.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    checkNotDestroyed(instance);
    const schedule = checked({ time_zone, entries });
    const before = findScheduleRow(tx, id);
    const next_at = (before && stillDue(tx, before, schedule)) ?? nextAfter(schedule, tx.now);
    const start_command = before?.start_command ?? null;
    const look_at = start_command === null ? next_at : tx.now;
    const times = { next_at, look_at, start_command };
    const row = { instance_id: id, time_zone, entries: JSON.stringify(entries), ...times, key_id: keyIdOf(caller) };
    writeSchedule(tx, row);
    recordAct(tx, caller.organizationId, actorOf(caller), 'schedule.replace', `instances/${id}`);
    return describe(tx, row);
  });
}

/** Takes the schedule from an instance, if it has one. Refuses with INSTANCE_NOT_FOUND. */
export function removeSchedule(core: Core, caller: Caller, id: string): void {
  core.store.transact((tx) => {
    getOwnInstance(tx, caller, id);
    dropSchedule(tx, id);
    recordAct(tx, caller.organizationId, actorOf(caller), 'schedule.remove', `instances/${id}`);
  });
}

function checkNotDestroyed({ status }: Instance): void {
  if (status !== 'destroying' && status !== 'destroyed') return;
  throw new Refusal('INVALID_STATE', `the instance is ${status}; it can have no schedule any more`);
}

function checked({ time_zone, entries }: ScheduleRequest): Schedule {
  const zone = findZone(time_zone);
  if (!zone) throw invalidField('time_zone', 'is not a time zone of the IANA database, such as Europe/Berlin or UTC');
  const position = findContradiction(entries);
  if (position !== undefined)
    throw invalidField(`entries.${position}`, 'starts or stops the instance when another entry does the opposite');
  return { entries, zone };
}

/** Returns when the action that is due by the earlier schedule was due, if the new one has the same; otherwise undefined. */
function stillDue(tx: Tx, before: ScheduleRow, schedule: Schedule): number | undefined {
  const earlier = scheduleOf(before);
  const due = earlier && dueOf(earlier, before, tx.now);
  if (!due) return undefined;
  const same = dueOf(schedule, { next_at: due.at }, tx.now);
  return same?.at === due.at && same.action === due.action ? due.at : undefined;
}

function describe(tx: Tx, row: ScheduleRow): ScheduleDetails {
  const schedule = scheduleOf(row);
  const next = schedule ? nextOccurrence(schedule.entries, schedule.zone, tx.now) : null;
  return { time_zone: row.time_zone, entries: entriesOf(row), next };
}
