import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { INSTANCE_STATUSES, type InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import {
  LATEST_START_MS,
  SCHEDULE_ACTIONS,
  WEEKDAYS,
  decide,
  findContradiction,
  latestOccurrence,
  nextOccurrence,
  type Occurrence,
  type ScheduleEntry,
  type Weekday,
  type ZoneOffset,
} from '../../control-plane/domain/instances/schedule.js';
import { findZone } from '../../control-plane/services/system/time-zones.js';

function zoneOf(name: string): ZoneOffset {
  const zone = findZone(name);
  if (!zone) throw new Error(`there is no ${name}`);
  return zone;
}

const start = (at: string, ...days: Weekday[]): ScheduleEntry => ({ action: 'start', days, at });
const stop = (at: string, ...days: Weekday[]): ScheduleEntry => ({ action: 'stop', days, at });
const shown = ({ action, at }: Occurrence) => `${action} ${new Date(at).toISOString()}`;
const next = (zone: string, after: string, ...entries: ScheduleEntry[]) =>
  shown(nextOccurrence(entries, zoneOf(zone), Date.parse(after)));
const latest = (zone: string, until: string, ...entries: ScheduleEntry[]) =>
  shown(latestOccurrence(entries, zoneOf(zone), Date.parse(until)));

describe('the next action', () => {
  const office = [start('08:00', 'monday', 'tuesday', 'friday'), stop('18:30', 'monday', 'tuesday', 'friday')];

  it.each([
    ['2026-01-05T06:59:59.999Z', 'start 2026-01-05T07:00:00.000Z'],
    ['2026-01-05T07:00:00.000Z', 'stop 2026-01-05T17:30:00.000Z'],
    ['2026-01-06T17:30:00.000Z', 'start 2026-01-09T07:00:00.000Z'],
    ['2026-01-09T17:30:00.000Z', 'start 2026-01-12T07:00:00.000Z'],
    ['2026-07-06T00:00:00.000Z', 'start 2026-07-06T06:00:00.000Z'],
  ])('after %s is the %s', (after, due) => {
    expect(next('Europe/Berlin', after, ...office)).toBe(due);
  });

  it.each([
    ['2026-01-05T07:00:00.000Z', 'start 2026-01-05T07:00:00.000Z'],
    ['2026-01-05T06:59:59.999Z', 'stop 2026-01-02T17:30:00.000Z'],
    ['2026-01-09T06:00:00.000Z', 'stop 2026-01-06T17:30:00.000Z'],
  ])('the latest until %s was the %s', (until, due) => {
    expect(latest('Europe/Berlin', until, ...office)).toBe(due);
  });

  it('of a single entry is a week after the last one', () => {
    expect(next('UTC', '2026-01-04T12:00:00.000Z', stop('12:00', 'sunday'))).toBe('stop 2026-01-11T12:00:00.000Z');
    expect(latest('UTC', '2026-01-11T11:59:59.999Z', stop('12:00', 'sunday'))).toBe('stop 2026-01-04T12:00:00.000Z');
  });

  it.each(['2026-01-04T23:59:00.000Z', '2026-01-05T00:00:00.000Z'])('is of the days of its zone, after %s', (after) => {
    expect(next('Pacific/Kiritimati', after, stop('14:01', 'monday'))).toBe('stop 2026-01-05T00:01:00.000Z');
    expect(next('Pacific/Pago_Pago', after, stop('13:01', 'sunday'))).toBe('stop 2026-01-05T00:01:00.000Z');
  });
});

describe('where clocks are set', () => {
  it.each([
    ['forward, by an hour', 'Europe/Berlin', '2026-03-28T12:00:00Z', '02:30', 'sunday', '2026-03-29T01:00:00.000Z'],
    ['back, by an hour', 'Europe/Berlin', '2026-10-24T12:00:00Z', '02:30', 'sunday', '2026-10-25T00:30:00.000Z'],
    [
      'forward, by half an hour',
      'Australia/Lord_Howe',
      '2026-10-03T12:00:00Z',
      '02:15',
      'sunday',
      '2026-10-03T15:30:00.000Z',
    ],
    [
      'back, by half an hour',
      'Australia/Lord_Howe',
      '2026-04-04T12:00:00Z',
      '01:45',
      'sunday',
      '2026-04-04T14:45:00.000Z',
    ],
    ['forward, at midnight', 'Africa/Cairo', '2026-04-23T12:00:00Z', '00:30', 'friday', '2026-04-23T22:00:00.000Z'],
    [
      'forward, by two hours',
      'Antarctica/Troll',
      '2026-03-28T12:00:00Z',
      '01:10',
      'sunday',
      '2026-03-29T01:00:00.000Z',
    ],
    ['forward, by a day', 'Pacific/Apia', '2011-12-29T20:00:00Z', '12:00', 'friday', '2011-12-30T10:00:00.000Z'],
  ] as const)('%s: in %s', (_how, zone, after, at, day, due) => {
    expect(next(zone, after, stop(at, day))).toBe(`stop ${due}`);
    expect(latest(zone, due, stop(at, day))).toBe(`stop ${due}`);
  });

  it('a time that comes twice counts once', () => {
    const entry = stop('02:30', 'sunday');
    expect(next('Europe/Berlin', '2026-10-25T00:30:00.000Z', entry)).toBe('stop 2026-11-01T01:30:00.000Z');
    expect(latest('Europe/Berlin', '2026-10-25T01:30:00.000Z', entry)).toBe('stop 2026-10-25T00:30:00.000Z');
  });

  it('a time of the next day that was shown before counts', () => {
    const entry = stop('00:00', 'sunday');
    const secondEvening = '2010-11-07T03:00:00.000Z';
    expect(next('America/St_Johns', secondEvening, entry)).toBe('stop 2010-11-14T03:30:00.000Z');
    expect(latest('America/St_Johns', secondEvening, entry)).toBe('stop 2010-11-07T02:30:00.000Z');
  });

  it('times that come to one moment are one, and a stop is stronger', () => {
    const entries = [start('02:10', 'sunday'), stop('02:50', 'sunday'), start('03:00', 'sunday')];
    const moment = 'stop 2026-03-29T01:00:00.000Z';
    expect(next('Europe/Berlin', '2026-03-28T12:00:00.000Z', ...entries)).toBe(moment);
    expect(latest('Europe/Berlin', '2026-03-29T01:00:00.000Z', ...entries)).toBe(moment);
    expect(next('Europe/Berlin', '2026-03-29T01:00:00.000Z', ...entries)).toBe('start 2026-04-05T00:10:00.000Z');
    const skipped = [start('12:00', 'friday'), stop('00:00', 'saturday')];
    expect(next('Pacific/Apia', '2011-12-29T20:00:00Z', ...skipped)).toBe('stop 2011-12-30T10:00:00.000Z');
  });
});

/** Local times as Intl writes them, for each minute around a day, which are compared as text. */
class Clocks {
  private readonly local: string[] = [];

  constructor(
    zone: string,
    private readonly from: number,
    days: number,
  ) {
    const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
    let highest = '';
    for (let at = from; at < from + days * DAY_MS; at += MINUTE_MS) {
      const local = format.format(at);
      highest = local > highest ? local : highest;
      this.local.push(highest);
    }
  }

  /** The first minute at which the clocks show this time, or have shown a later one. */
  momentOf(local: string): number {
    let [low, high] = [0, this.local.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((this.local[middle] ?? '') < local) low = middle + 1;
      else high = middle;
    }
    return this.from + low * MINUTE_MS;
  }

  /** Everything that a schedule does on these days, in its order; of several things at one moment, all. */
  allOf(entries: readonly ScheduleEntry[], dates: readonly string[]): Occurrence[] {
    const found = dates.flatMap((date) => {
      const weekday = WEEKDAYS[(new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7] ?? 'monday';
      const its = entries.filter(({ days }) => days.includes(weekday));
      return its.map(({ action, at }) => ({ action, at: this.momentOf(`${date} ${at}`) }));
    });
    return found.sort((one, other) => one.at - other.at || (one.action > other.action ? -1 : 1));
  }
}

const ZONES = [
  'Africa/Cairo',
  'Africa/Casablanca',
  'America/Havana',
  'America/Nuuk',
  'America/Santiago',
  'Antarctica/Troll',
  'Asia/Kolkata',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'UTC',
];

const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/** The days of a year on which the clocks of a zone are set; without one, the first of May. */
function changesOf(zone: string, year: number): number[] {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  const offset = (at: number) => format.format(at).split('GMT')[1];
  const days = Array.from({ length: 365 }, (_, index) => Date.UTC(year, 0, 1) + index * DAY_MS);
  const changes = days.filter((day) => offset(day) !== offset(day + DAY_MS));
  return changes.length > 0 ? changes : [Date.UTC(year, 4, 1)];
}

const aDay = fc.uniqueArray(fc.constantFrom(...WEEKDAYS), { minLength: 1, maxLength: 7 });
const aTime = fc
  .oneof({ weight: 3, arbitrary: fc.nat({ max: 239 }) }, { weight: 1, arbitrary: fc.nat({ max: 1_439 }) })
  // Most are in the hours around midnight in which clocks are set.
  .map((minutes) => (minutes + 1_410) % 1_440)
  .map((minutes) => [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0')).join(':'));
const anEntry = fc.record({ action: fc.constantFrom(...SCHEDULE_ACTIONS), days: aDay, at: aTime });
const someEntries = fc.array(anEntry, { minLength: 1, maxLength: 20 });

describe('compared with a search through what Intl shows of each minute', () => {
  const windows = ZONES.flatMap((zone) => changesOf(zone, 2026).map((day) => [zone, day] as const));
  // A day that was skipped, and clocks that were set back at 00:01, so that they had shown the next day before.
  windows.push(['Pacific/Apia', Date.UTC(2011, 11, 30)], ['America/St_Johns', Date.UTC(2010, 10, 7)]);

  it.each(windows.map(([zone, day]) => [zone, dateOf(day), day] as const))('%s around %s', (name, _date, day) => {
    const zone = zoneOf(name);
    const clocks = new Clocks(name, day - 11 * DAY_MS, 22);
    const dates = Array.from({ length: 20 }, (_, index) => dateOf(day + (index - 10) * DAY_MS));
    const aMoment = fc.integer({ min: -DAY_MS, max: 2 * DAY_MS }).map((ms) => day + ms);
    const aMinute = aMoment.map((at) => at - (at % MINUTE_MS));
    fc.assert(
      fc.property(someEntries, fc.oneof(aMoment, aMinute), (entries, at) => {
        const all = clocks.allOf(entries, dates);
        expect(nextOccurrence(entries, zone, at)).toEqual(all.find((one) => one.at > at));
        const last = all.findLast((one) => one.at <= at);
        expect(latestOccurrence(entries, zone, at)).toEqual(all.find((one) => one.at === last?.at));
      }),
      { numRuns: 100 },
    );
  });
});

describe('time zones', () => {
  it.each(['Europe/Berlin', 'europe/berlin', 'Asia/Kolkata', 'Asia/Calcutta', 'US/Eastern', 'UTC', 'Etc/GMT+5'])(
    '%s is one',
    (name) => {
      expect(findZone(name)?.(Date.UTC(2026, 0, 1)) ?? NaN).not.toBeNaN();
    },
  );

  it.each(['', 'Europe', 'Europe/Paris2', 'Mars/Olympus_Mons', 'constructor', '../UTC', 'UTC+1'])(
    '"%s" is none',
    (name) => {
      expect(findZone(name)).toBeUndefined();
    },
  );
});

describe('entries contradict each other', () => {
  it.each<[string, ScheduleEntry[], number | undefined]>([
    ['a start and a stop at one time', [start('08:00', 'monday'), stop('08:00', 'sunday', 'monday')], 1],
    ['within the same time of other days', [start('08:00', 'monday'), stop('08:00', 'tuesday')], undefined],
    ['at other times of the day', [start('08:00', 'monday'), stop('08:01', 'monday')], undefined],
    ['twice the same', [stop('08:00', 'monday'), stop('08:00', 'monday')], undefined],
    ['the last with the first', [stop('08:00', 'monday'), stop('09:00', 'monday'), start('08:00', 'monday')], 2],
  ])('%s', (_name, entries, position) => {
    expect(findContradiction(entries)).toBe(position);
  });
});

describe('what is due', () => {
  const now = { lateMs: 0, isStatusKnown: true, areHostsExpected: true };
  const decisions = (action: 'start' | 'stop', changes: Partial<typeof now> = {}) =>
    Object.fromEntries(INSTANCE_STATUSES.map((status) => [status, decide(action, status, { ...now, ...changes })]));
  const all = (decision: string) => Object.fromEntries(INSTANCE_STATUSES.map((status) => [status, decision]));
  const of = (nothing: string, others: Partial<Record<InstanceStatus, string>>) => ({ ...all(nothing), ...others });

  it('a stop is carried out as soon as the instance can be stopped, however late', () => {
    const stops = of('nothing', { running: 'carry_out', creating: 'wait', starting: 'wait' });
    expect(decisions('stop')).toEqual(stops);
    expect(decisions('stop', { lateMs: 100 * DAY_MS, areHostsExpected: false })).toEqual(stops);
    expect(decisions('stop', { lateMs: 100 * DAY_MS, isStatusKnown: false })).toEqual(all('wait'));
  });

  it('a start is carried out within an hour, once hosts can be connected', () => {
    const up = { running: 'nothing', creating: 'nothing', starting: 'nothing' };
    expect(decisions('start')).toEqual(of('carry_out', { ...up, stopping: 'wait' }));
    expect(decisions('start', { lateMs: LATEST_START_MS })).toEqual(of('carry_out', { ...up, stopping: 'wait' }));
    expect(decisions('start', { lateMs: LATEST_START_MS + 1 })).toEqual(of('missed', up));
    expect(decisions('start', { areHostsExpected: false })).toEqual(of('wait', up));
    expect(decisions('start', { isStatusKnown: false })).toEqual(all('wait'));
    expect(decisions('start', { isStatusKnown: false, lateMs: LATEST_START_MS + 1 })).toEqual(all('missed'));
  });
});
