import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import type { InstanceStatus } from './instance-state.js';

export const SCHEDULE_ACTIONS = ['start', 'stop'] as const;
export type ScheduleAction = (typeof SCHEDULE_ACTIONS)[number];

export const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** Most entries of one schedule. */
export const MOST_ENTRIES = 20;

/** One line of a schedule. It names at least one day; `at` is HH:MM of local time. */
export interface ScheduleEntry {
  action: ScheduleAction;
  days: Weekday[];
  at: string;
}

/** An action of a schedule, and when it is due in ms since 1970 UTC. */
export interface Occurrence {
  at: number;
  action: ScheduleAction;
}

/** Returns by how many ms the local time of a time zone is ahead of UTC, at a time in ms since 1970 UTC. */
export type ZoneOffset = (at: number) => number;

/** A start that is later than this is not carried out any more. */
export const LATEST_START_MS = HOUR_MS;

/** `code` of a start that came too late, beside the codes with which the API refuses a start. */
export const SCHEDULE_MISSED = 'SCHEDULE_MISSED';

const WEEK_DAYS = 7;
/** A week in both directions, and the next day: where clocks are set back, they can have shown times of it before. */
const SEARCHED_DAYS = WEEK_DAYS + 2;

/**
 * Returns when a schedule next does something after a time (ms since 1970 UTC). A local time that clocks skip comes to the moment at
 * which they are set forward; one that they show twice, to the first one. Where two entries come to the same moment, the stop is
 * returned. Looks at nine days at most.
 */
export function nextOccurrence(entries: readonly ScheduleEntry[], zone: ZoneOffset, after: number): Occurrence {
  const days = daysFrom(localDay(zone, after), 1);
  return firstOf(entries, zone, days, (at) => at > after, earlier);
}

/** Returns what a schedule last had to do up to and including a time (ms since 1970 UTC); otherwise like {@link nextOccurrence}. */
export function latestOccurrence(entries: readonly ScheduleEntry[], zone: ZoneOffset, until: number): Occurrence {
  const days = daysFrom(localDay(zone, until) + 1, -1);
  return firstOf(entries, zone, days, (at) => at <= until, later);
}

/** Days, as their number since 1970-01-01. */
function daysFrom(first: number, step: 1 | -1): number[] {
  return Array.from({ length: SEARCHED_DAYS }, (_, index) => first + index * step);
}

/** Returns the first match in the order of `compare`. Times of the day after the first match can come to the same moment. */
function firstOf(
  entries: readonly ScheduleEntry[],
  zone: ZoneOffset,
  days: readonly number[],
  matches: (at: number) => boolean,
  compare: (one: Occurrence, other: Occurrence) => number,
): Occurrence {
  const found: Occurrence[] = [];
  for (const day of days) {
    const isLast = found.length > 0;
    found.push(...occurrencesOn(entries, zone, day).filter(({ at }) => matches(at)));
    if (isLast) break;
  }
  const [first] = found.sort(compare);
  if (!first) throw new Error('a schedule has no entry with a day');
  return first;
}

const earlier = (one: Occurrence, other: Occurrence) => one.at - other.at || stopFirst(one, other);
const later = (one: Occurrence, other: Occurrence) => other.at - one.at || stopFirst(one, other);
const stopFirst = (one: Occurrence, other: Occurrence) =>
  Number(one.action !== 'stop') - Number(other.action !== 'stop');

function occurrencesOn(entries: readonly ScheduleEntry[], zone: ZoneOffset, day: number): Occurrence[] {
  const weekday = weekdayOf(day);
  const its = entries.filter(({ days }) => days.includes(weekday));
  if (its.length === 0) return [];
  const around = { from: (day - 1) * DAY_MS, to: (day + 2) * DAY_MS };
  const offsets = { before: zone(around.from), after: zone(around.to) };
  return its.map(({ action, at }) => {
    const local = day * DAY_MS + timeOfDay(at);
    return { action, at: momentOf(zone, local, offsets) ?? changeBetween(zone, around) };
  });
}

/**
 * Returns the first moment at which the clocks of a zone show a local time (as ms since 1970, as if it were UTC), given the offsets a
 * day before and after: a time that clocks show twice counts at the first. Undefined: clocks skip it. Clocks must not be set twice
 * within three days.
 */
function momentOf(
  zone: ZoneOffset,
  local: number,
  { before, after }: { before: number; after: number },
): number | undefined {
  if (before === after) return local - before;
  const moments = [local - before, local - after].filter((at) => at + zone(at) === local);
  return moments.length > 0 ? Math.min(...moments) : undefined;
}

/** Returns the first ms at which a zone has another offset than at `from`; it has another one at `to`. */
function changeBetween(zone: ZoneOffset, { from, to }: { from: number; to: number }): number {
  const before = zone(from);
  let [low, high] = [from, to];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** 1970-01-01 was a Thursday. */
function weekdayOf(day: number): Weekday {
  return WEEKDAYS[(day + WEEKDAYS.indexOf('thursday')) % WEEK_DAYS] ?? 'monday';
}

function timeOfDay(at: string): number {
  const [hours, minutes] = at.split(':').map(Number);
  return (hours ?? 0) * HOUR_MS + (minutes ?? 0) * MINUTE_MS;
}

function localDay(zone: ZoneOffset, at: number): number {
  return Math.floor((at + zone(at)) / DAY_MS);
}

/** Returns the position of the first entry that contradicts an earlier one: a start and a stop at the same time of a day. */
export function findContradiction(entries: readonly ScheduleEntry[]): number | undefined {
  const actions = new Map<string, ScheduleAction>();
  const position = entries.findIndex(({ action, days, at }) =>
    days.some((day) => {
      const earlierAction = actions.get(`${day} ${at}`) ?? action;
      actions.set(`${day} ${at}`, action);
      return earlierAction !== action;
    }),
  );
  return position === -1 ? undefined : position;
}

/** What to do with an action that is due: carry it out, nothing, look again soon, or say that it comes too late. */
export type Decision = 'carry_out' | 'nothing' | 'wait' | 'missed';

/** What a decision depends on, besides the status of the instance. */
export interface Circumstances {
  /** Milliseconds since the action was due. */
  lateMs: number;
  /** Whether the status is the host's: after a restore, it is not until the host has connected. */
  isStatusKnown: boolean;
  /** Whether hosts have had the time to connect after a start of the control plane. */
  areHostsExpected: boolean;
}

/**
 * Decides on an action of a schedule that is due. A stop waits until the instance can be stopped, however late that is. A start waits
 * for a stop that is under way. An instance that has, or will have, the wanted status by itself is left alone.
 */
export function decide(
  action: ScheduleAction,
  status: InstanceStatus,
  { lateMs, isStatusKnown, areHostsExpected }: Circumstances,
): Decision {
  const isTooLate = action === 'start' && lateMs > LATEST_START_MS;
  if (!isStatusKnown) return isTooLate ? 'missed' : 'wait';
  const isComingUp = status === 'creating' || status === 'starting';
  if (action === 'stop') return status === 'running' ? 'carry_out' : isComingUp ? 'wait' : 'nothing';
  if (status === 'running' || isComingUp) return 'nothing';
  if (isTooLate) return 'missed';
  return status === 'stopping' || !areHostsExpected ? 'wait' : 'carry_out';
}
