import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Interval, Metered } from '../../control-plane/domain/money/metered.js';
import { settle, type Account, type Entry } from '../../control-plane/domain/money/settlement.js';

/** A micro-dollar each millisecond. */
const RATE = 3_600_000;
const PERIOD_MS = 60_000;

let ids = 0;
const interval = (attestedTo: number, changes: Partial<Interval> = {}): Interval => ({
  id: ++ids,
  settledTo: 0,
  attestedTo,
  closedAt: null,
  beyond: 'runs',
  apiKeyId: null,
  ...changes,
});
const gpu = (intervals: readonly Interval[], ratePerHourMicro = RATE, settledMs = 0): Metered => ({
  instanceId: `instance ${++ids}`,
  meter: 'gpu',
  ratePerHourMicro,
  settledMs,
  intervals,
});
const disk = (...args: Parameters<typeof gpu>): Metered => ({ ...gpu(...args), meter: 'disk' });
const account = (balanceMicro: number, meters: readonly Metered[], entries: readonly Entry[] = []): Account => ({
  balanceMicro,
  entries,
  meters,
  limits: [],
});

const chargedOf = (...args: Parameters<typeof settle>) =>
  settle(...args).bookings.map(({ chargedMicro }) => chargedMicro);
/** How far each interval is settled, and how much of it was absorbed. */
const settledOf = (...args: Parameters<typeof settle>) =>
  settle(...args).intervals.map(({ settledTo, absorbedMs }) => [settledTo, absorbedMs]);

describe('While the balance lasts', () => {
  it('what is attested is charged, and the rest is left for later', () => {
    const metered = gpu([interval(700)]);
    expect(settle(account(1_000_000, [metered]), 1_000)).toEqual({
      bookings: [
        {
          instanceId: metered.instanceId,
          meter: 'gpu',
          ms: 700,
          chargedMicro: 700,
          days: [
            {
              day: 0,
              micro: 700,
              apiKeyId: null,
            },
          ],
        },
      ],
      intervals: [{ id: metered.intervals[0]?.id, settledTo: 700, absorbedMs: 0, absorbedMicro: 0 }],
      earlier: [],
      stops: [],
      nextAt: 1_000 + PERIOD_MS,
    });
  });

  it('nobody waits for an instance whose host has not spoken yet', () => {
    const meters = [gpu([interval(1_000)]), gpu([interval(100, { beyond: 'awaited' })])];
    expect(chargedOf(account(1_000_000, meters), 1_000)).toEqual([1_000, 100]);
  });

  it('nor because of a payment, whenever that was', () => {
    for (const at of [500, 1_000, 2_000]) {
      const meters = [gpu([interval(3_000, { settledTo: 1_000 })]), gpu([interval(1_500, { settledTo: 1_000 })])];
      const balance = at < 2_000 ? 1_000_000 : 1_100_000;
      expect(chargedOf(account(balance, meters, [{ at, amountMicro: 1_000_000 }]), 3_000)).toEqual([2_000, 500]);
    }
  });

  it('nothing is booked of what was settled before', () => {
    const meters = [gpu([interval(500, { settledTo: 500 }), interval(900, { settledTo: 800 })])];
    const { bookings, intervals } = settle(account(1_000_000, meters), 1_000);
    expect(bookings).toMatchObject([{ ms: 100 }]);
    expect(intervals).toHaveLength(1);
    const settled = [gpu([interval(500, { settledTo: 500 })])];
    expect(settle(account(1_000_000, settled), 1_000)).toMatchObject({ bookings: [], intervals: [] });
  });

  it('no fraction is had twice or lost: what is charged is the floor of all time together', () => {
    // A micro-dollar each third millisecond.
    const third = (settledMs: number, settledTo: number, attestedTo: number) =>
      chargedOf(account(1_000_000, [gpu([interval(attestedTo, { settledTo })], RATE / 3, settledMs)]), 1_000);
    expect([third(0, 0, 2), third(2, 2, 4), third(4, 4, 9), third(0, 0, 9)]).toEqual([[0], [1], [2], [3]]);
  });

  it('the intervals of a meter are charged together', () => {
    const its = [interval(100, { closedAt: 100 }), interval(500, { settledTo: 200 })];
    expect(settle(account(1_000_000, [gpu(its)]), 1_000)).toMatchObject({ bookings: [{ ms: 400 }] });
  });

  it('it is settled again in the millisecond in which it will run out, or after a minute', () => {
    const next = (balance: number, ...meters: Metered[]) => settle(account(balance, meters), 1_000).nextAt;
    const running = () => gpu([interval(1_000, { settledTo: 1_000 })]);
    expect(next(500, running())).toBe(1_500);
    expect(next(500, running(), running())).toBe(1_250);
    expect(next(PERIOD_MS, running())).toBe(1_000 + PERIOD_MS);
    expect(next(PERIOD_MS + 1, running())).toBe(1_000 + PERIOD_MS);
    expect(next(500, disk([interval(1_000, { settledTo: 1_000 })]))).toBe(1_500);
  });

  it('what has ended, or whose host is silent, runs nothing down', () => {
    const next = (changes: Partial<Interval>) =>
      settle(account(500, [gpu([interval(1_000, { settledTo: 1_000, ...changes })])]), 1_000).nextAt;
    expect(next({ closedAt: 1_400 })).toBe(1_000 + PERIOD_MS);
    expect(next({ closedAt: 1_600 })).toBe(1_500);
    expect(next({ beyond: 'silent' })).toBe(1_000 + PERIOD_MS);
    expect(next({ beyond: 'awaited' })).toBe(1_500);
  });

  it('an entry that is still to come counts only from its time on', () => {
    const meters = [gpu([interval(1_000, { settledTo: 1_000 })])];
    // Such as a wall clock that was set back leaves.
    const credited = account(10_500, meters, [{ at: 2_000, amountMicro: 10_000 }]);
    expect(settle(credited, 1_000)).toMatchObject({ nextAt: 1_500 });
    const later = account(10_500, meters, [{ at: 1_000 + PERIOD_MS + 1, amountMicro: 10_000 }]);
    expect(settle(later, 1_000)).toMatchObject({ nextAt: 11_500 });
  });
});

describe('Where nothing is metered', () => {
  it('there is no time at which to settle again', () => {
    expect(settle(account(1_000, []), 5)).toEqual({
      bookings: [],
      intervals: [],
      earlier: [],
      stops: [],
      nextAt: null,
    });
    expect(settle(account(0, []), 5)).toEqual({ bookings: [], intervals: [], earlier: [], stops: [], nextAt: null });
  });

  it('a debt is none the less one', () => {
    expect(settle(account(-1, []), 5)).toEqual({
      bookings: [],
      intervals: [],
      earlier: [],
      stops: [],
      exhaustedAt: 5,
      nextAt: null,
    });
  });
});

describe('Once the balance has run out', () => {
  it('GPU time is charged up to that millisecond, and the rest is absorbed', () => {
    const given = account(1_000, [gpu([interval(2_500)])]);
    expect(settle(given, 3_000)).toMatchObject({
      bookings: [{ ms: 1_000, chargedMicro: 1_000 }],
      intervals: [{ settledTo: 2_500, absorbedMs: 1_500 }],
      exhaustedAt: 1_000,
      nextAt: 3_000 + PERIOD_MS,
    });
  });

  it('disk is charged into debt', () => {
    const given = account(1_000, [disk([interval(3_000)])]);
    expect(settle(given, 3_000)).toMatchObject({
      bookings: [{ ms: 3_000, chargedMicro: 3_000 }],
      intervals: [{ settledTo: 3_000, absorbedMs: 0 }],
      exhaustedAt: 1_000,
    });
  });

  it('a disk alone runs out with its first micro-dollar', () => {
    expect(settle(account(0, [disk([interval(3_000)])]), 3_000)).toMatchObject({ exhaustedAt: 1 });
  });

  it('a disk has cost what it has cost when a payment comes', () => {
    const given = account(2_000, [disk([interval(3_000)])], [{ at: 1_500, amountMicro: 1_000 }]);
    expect(settle(given, 3_000)).toMatchObject({ bookings: [{ ms: 3_000 }], exhaustedAt: 2_000 });
  });

  it('in this very millisecond, it is not settled again in the same one', () => {
    expect(settle(account(2_000, [gpu([interval(2_000)])]), 2_000)).toMatchObject({
      bookings: [{ ms: 2_000 }],
      exhaustedAt: 2_000,
      nextAt: 2_000 + PERIOD_MS,
    });
  });

  it('a payment in this very millisecond leaves nothing to be stopped', () => {
    const given = account(11_000, [gpu([interval(3_000)])], [{ at: 3_000, amountMicro: 10_000 }]);
    expect(settle(given, 3_000)).toMatchObject({ bookings: [{ ms: 1_000 }], nextAt: 13_000 });
    expect(settle(given, 3_000).exhaustedAt).toBeUndefined();
  });

  it('several share it in the order of time', () => {
    const late = gpu([interval(3_000, { settledTo: 600 })]);
    expect(chargedOf(account(1_000, [gpu([interval(3_000)]), late]), 3_000)).toEqual([800, 200]);
  });

  it('a disk takes its part of it', () => {
    const given = account(1_000, [gpu([interval(3_000)]), disk([interval(3_000)])]);
    expect(chargedOf(given, 3_000)).toEqual([500, 3_000]);
  });

  it('with nothing at all, nothing is had for it', () => {
    const given = account(0, [gpu([interval(3_000, { settledTo: 1_000 })])]);
    expect(settle(given, 3_000)).toMatchObject({
      bookings: [],
      intervals: [{ settledTo: 3_000, absorbedMs: 2_000 }],
      exhaustedAt: 1_000,
    });
  });

  it('what costs nothing goes on with nothing, and not in debt', () => {
    const free = [gpu([interval(3_000)], 0)];
    expect(settle(account(0, free), 3_000)).toMatchObject({ bookings: [{ ms: 3_000, chargedMicro: 0 }] });
    expect(settle(account(0, free), 3_000).exhaustedAt).toBeUndefined();
    expect(settle(account(-1, free), 3_000)).toMatchObject({ exhaustedAt: 0 });
    // A disk that costs nothing beside nothing is no reason either.
    expect(settle(account(0, [disk([interval(3_000)], 0)]), 3_000).exhaustedAt).toBeUndefined();
    expect(settle(account(0, [...free, gpu([interval(3_000)])]), 3_000)).toMatchObject({ exhaustedAt: 0 });
  });

  it('it lasts to the end of the millisecond in which it is used up, for which what is left is charged', () => {
    // Two micro-dollars each millisecond, and one left over.
    const metered = gpu([interval(3_000)], 2 * RATE);
    expect(chargedOf(account(1_001, [metered]), 3_000)).toEqual([1_001]);
    expect(settle(account(1_001, [metered]), 3_000).intervals).toMatchObject([{ absorbedMs: 2_499, absorbedMicro: 1 }]);
  });

  it('a payment lifts it from its own time on', () => {
    const metered = [gpu([interval(3_000)])];
    const given = account(2_000, metered, [{ at: 1_500, amountMicro: 1_000 }]);
    expect(settle(given, 3_000)).toMatchObject({
      bookings: [{ ms: 2_000 }],
      intervals: [{ settledTo: 3_000, absorbedMs: 1_000 }],
      exhaustedAt: 2_500,
    });
  });

  it('a payment that lasts leaves nothing to be stopped', () => {
    const given = account(11_000, [gpu([interval(3_000)])], [{ at: 1_500, amountMicro: 10_000 }]);
    const settlement = settle(given, 3_000);
    expect(settlement).toMatchObject({ intervals: [{ absorbedMs: 500 }], nextAt: 11_500 });
    expect(settlement.exhaustedAt).toBeUndefined();
  });

  it('a payment that lifts nothing leaves it since when it was', () => {
    const refund = [
      { at: 1_500, amountMicro: -10 },
      { at: 2_000, amountMicro: 10 },
    ];
    expect(settle(account(1_000, [gpu([interval(3_000)])], refund), 3_000)).toMatchObject({ exhaustedAt: 1_000 });
  });

  it('payments before what is to be settled are in the balance already', () => {
    const metered = [gpu([interval(3_000, { settledTo: 1_000 })])];
    const given = account(500, metered, [{ at: 1_000, amountMicro: 500 }]);
    expect(settle(given, 3_000)).toMatchObject({ exhaustedAt: 1_500 });
  });

  it('what was absorbed before is not held against it again', () => {
    const metered = [gpu([interval(4_000)])];
    const given = account(1_500, metered, [{ at: 2_000, amountMicro: 500 }]);
    expect(settle(given, 4_000)).toMatchObject({ bookings: [{ ms: 1_500 }], exhaustedAt: 2_500 });
  });
});

describe('Where it has run out and not everything is certain', () => {
  it('what lies beyond the word of a host that has just spoken waits', () => {
    const meters = [gpu([interval(2_000)]), gpu([interval(400)])];
    expect(settledOf(account(1_000, meters), 2_000)).toEqual([
      [400, 0],
      [400, 0],
    ]);
    // Who runs is stopped all the same.
    expect(settle(account(1_000, meters), 2_000)).toMatchObject({ exhaustedAt: 500 });
  });

  it('also where it runs out in this very millisecond', () => {
    const meters = [gpu([interval(2_000)]), gpu([interval(400)])];
    expect(chargedOf(account(4_000, meters), 2_000)).toEqual([400, 400]);
  });

  it('one interval of many for which a host is waited for is enough', () => {
    const its = [interval(100, { closedAt: 100 }), interval(400, { settledTo: 200, beyond: 'awaited' })];
    expect(settle(account(1_000, [gpu([interval(2_000)]), gpu(its)]), 2_000).exhaustedAt).toBeUndefined();
  });

  it('nobody is stopped before a host that is about to speak has done so', () => {
    const meters = [gpu([interval(2_000)]), gpu([interval(400, { beyond: 'awaited' })])];
    const settlement = settle(account(1_000, meters), 2_000);
    expect(settlement.exhaustedAt).toBeUndefined();
    expect(settlement.nextAt).toBe(2_000 + 5_000);
    expect(settlement.intervals).toMatchObject([{ settledTo: 400 }, { settledTo: 400 }]);
  });

  it('but where it had run out before that, whatever it says', () => {
    const at = (attestedTo: number) =>
      settle(account(1_000, [gpu([interval(2_000)]), gpu([interval(attestedTo, { beyond: 'awaited' })])]), 2_000);
    expect(at(500)).toMatchObject({ exhaustedAt: 500 });
    expect(at(499).exhaustedAt).toBeUndefined();
  });

  it('a host that is silent is waited for by nobody, and nothing is taken for granted of it', () => {
    const meters = [gpu([interval(2_000)]), gpu([interval(400, { beyond: 'silent' })])];
    expect(settle(account(1_000, meters), 2_000)).toMatchObject({
      bookings: [{ ms: 600 }, { ms: 400 }],
      exhaustedAt: 600,
    });
  });

  it('nor is one whose word goes as far as it can', () => {
    const ended = interval(400, { closedAt: 400, beyond: 'awaited' });
    expect(settledOf(account(1_000, [gpu([interval(2_000)]), gpu([ended])]), 2_000)).toEqual([
      [2_000, 1_400],
      [400, 0],
    ]);
    const ending = interval(400, { closedAt: 700, beyond: 'awaited' });
    expect(settledOf(account(1_000, [gpu([interval(2_000)]), gpu([ending])]), 2_000)).toEqual([
      [400, 0],
      [400, 0],
    ]);
    const ahead = interval(2_000, { closedAt: 5_000, beyond: 'awaited' });
    expect(settledOf(account(1_000, [gpu([interval(2_000)]), gpu([ahead])]), 2_000)).toEqual([
      [2_000, 1_500],
      [2_000, 1_500],
    ]);
  });

  it('what is attested beyond now is settled up to now', () => {
    expect(settledOf(account(1_000, [gpu([interval(2_600)])]), 2_000)).toEqual([[2_000, 1_000]]);
    expect(settledOf(account(1_000_000, [gpu([interval(2_600)])]), 2_000)).toEqual([[2_000, 0]]);
  });
});

/** What an account is like once a settlement is booked. */
function booked(before: Account, now: number): Account {
  const { bookings, intervals } = settle(before, now);
  const meters = before.meters.map((metered) => ({
    ...metered,
    settledMs: metered.settledMs + (bookings.find((one) => one.instanceId === metered.instanceId)?.ms ?? 0),
    intervals: metered.intervals.map((one) => ({
      ...one,
      settledTo: intervals.find(({ id }) => id === one.id)?.settledTo ?? one.settledTo,
    })),
  }));
  return {
    ...before,
    meters,
    balanceMicro: bookings.reduce((left, one) => left - one.chargedMicro, before.balanceMicro),
  };
}

it('settled at whatever times, it comes to the same', () => {
  const time = fc.nat({ max: 5_000 });
  const metered = fc
    .record({ from: time, ms: time, rate: fc.nat({ max: 3 * RATE }), isDisk: fc.boolean() })
    .map(({ from, ms, rate, isDisk }) =>
      (isDisk ? disk : gpu)([interval(from + ms, { settledTo: from, closedAt: from + ms })], rate),
    );
  fc.assert(
    fc.property(
      fc.array(metered, { maxLength: 4 }),
      fc.nat({ max: 20_000 }),
      fc.array(time),
      (meters, balance, times) => {
        const whole = account(balance, meters);
        const stepwise = [...times.sort((one, other) => one - other), 10_000].reduce(booked, whole);
        const once = booked(whole, 10_000);
        expect(stepwise.balanceMicro).toBe(once.balanceMicro);
        expect(stepwise.meters.map(({ settledMs }) => settledMs)).toEqual(
          once.meters.map(({ settledMs }) => settledMs),
        );
      },
    ),
  );
});

describe('A limit', () => {
  const limit = (leftMicro: number, from: number, countsFrom = 0) => ({
    name: {
      kind: 'day' as const,
      apiKeyId: null,
    },
    countsFrom,
    from,
    to: Infinity,
    leftMicro,
    earlier: null,
  });
  /** One that was changed at `to`. */
  const earlier = (leftMicro: number | null, from: number, to: number) => ({
    ...limit(0, from),
    to,
    leftMicro,
    earlier: { rowId: 7 },
  });

  it('counts what is not settled from before it was set, and ends nothing before', () => {
    for (const [left, charged] of [
      [1_500, 1_500],
      [500, 1_000],
    ] as const) {
      const given = { ...account(1_000_000, [gpu([interval(3_000)])]), limits: [limit(left, 1_000)] };
      expect(chargedOf(given, 3_000)).toEqual([charged]);
    }
  });

  it('leaves the rest of its last millisecond to nobody, disks first, then the lower ids', () => {
    const meters = [gpu([interval(3_000)], 2 * RATE), disk([interval(3_000)])];
    const given = { ...account(1_000_000, meters), limits: [limit(1_000, 0)] };
    expect(chargedOf(given, 3_000)).toEqual([1_000 - 334, 3_000]);
  });

  it('that was changed ends what was used while it was in force, and stops nothing', () => {
    for (const [left, from, to, next, charged, before] of [
      // Used up at 500, and raised at 2,000.
      [500, 0, 2_000, 10_000, 1_500, 500],
      // The later one is used up at 2,600.
      [500, 0, 2_000, 1_100, 1_100, 500],
      // Used up only after it was changed.
      [2_000, 0, 1_500, 10_000, 3_000, 1_500],
      // Used up before it was set: what counts for it ends it from then on.
      [500, 1_000, 2_000, 10_000, 2_000, 1_000],
      // Lowered at 2,000 below what was spent then.
      [10_000, 0, 2_000, 700, 2_000, 2_000],
    ] as const) {
      const meters = [gpu([interval(3_000)])];
      const limits = [earlier(left, from, to), limit(next, to)];
      const { bookings, intervals, stops, earlier: counted } = settle({ ...account(1_000_000, meters), limits }, 3_000);
      expect(bookings.map(({ chargedMicro }) => chargedMicro)).toEqual([charged]);
      expect(intervals).toMatchObject([{ settledTo: 3_000, absorbedMs: 3_000 - charged }]);
      expect(counted).toEqual([{ rowId: 7, chargedMicro: before }]);
      expect(stops).toHaveLength(next <= charged ? 1 : 0);
    }
  });

  it('that was a time ends what was used up to its change', () => {
    const given = { ...account(1_000_000, [gpu([interval(3_000)])]), limits: [earlier(null, 1_000, 2_000)] };
    expect(chargedOf(given, 3_000)).toEqual([2_000]);
  });

  it('that was changed is settled bit by bit like at once', () => {
    const limits = [earlier(500, 0, 2_000), limit(1_100, 2_000)];
    const meters = [gpu([interval(3_000)])];
    const first = settle({ ...account(1_000_000, [gpu([interval(1_200)])]), limits }, 1_200);
    expect(first.bookings.map(({ chargedMicro }) => chargedMicro)).toEqual([500]);
    const [its] = meters;
    const rest = { ...its, settledMs: 500, intervals: [interval(3_000, { settledTo: 1_200 })] } as Metered;
    const later = { ...account(999_500, [rest]), limits: [earlier(0, 0, 2_000), limit(600, 2_000)] };
    expect(chargedOf(later, 3_000)).toEqual([600]);
  });
});
