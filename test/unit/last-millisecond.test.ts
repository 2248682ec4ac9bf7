import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { Interval, Metered } from '../../control-plane/domain/money/metered.js';
import { settle, type Account } from '../../control-plane/domain/money/settlement.js';

const HIGHEST_PRICE = 1_000_000_000_000;

const since = (id: number, at: number): Interval => ({
  id,
  settledTo: at,
  attestedTo: 1_000_000,
  closedAt: null,
  beyond: 'runs',
  apiKeyId: null,
});
const gpu = (instanceId: string, ratePerHourMicro: number, interval: Interval): Metered => ({
  instanceId,
  meter: 'gpu',
  ratePerHourMicro,
  settledMs: 0,
  intervals: [interval],
});
const chargedTo = ({ bookings }: ReturnType<typeof settle>) =>
  Object.fromEntries(bookings.map(({ instanceId, meter, chargedMicro }) => [`${meter} ${instanceId}`, chargedMicro]));
const all = (charged: Record<string, number>) => Object.values(charged).reduce((sum, micro) => sum + micro, 0);

describe('GPU time in the millisecond in which the balance runs out', () => {
  it('is charged no further than what is left, at the highest price', () => {
    const meters = [gpu('a', HIGHEST_PRICE, since(1, 0))];
    const settlement = settle({ balanceMicro: 1_000_000, limits: [], entries: [], meters }, 100);
    expect(chargedTo(settlement)).toEqual({ 'gpu a': 1_000_000 });
    // Three milliseconds cost 833,333, the fourth 277,778.
    expect(settlement.exhaustedAt).toBe(4);
    expect(settlement.intervals).toEqual([{ id: 1, settledTo: 100, absorbedMs: 96, absorbedMicro: 111_111 }]);
  });

  it('is charged to the lowest ids first, after disks, which go into debt', () => {
    const perMs = (micro: number) => micro * HOUR_MS;
    const meters: Metered[] = [
      gpu('b', perMs(10), since(1, 0)),
      gpu('a', perMs(10), since(2, 0)),
      { ...gpu('c', perMs(10), since(3, 0)), meter: 'disk' },
    ];
    const settled = (balanceMicro: number) => {
      const settlement = settle({ balanceMicro, limits: [], entries: [], meters }, 2);
      return { ...chargedTo(settlement), since: settlement.exhaustedAt };
    };
    expect(settled(30)).toEqual({ 'gpu a': 10, 'gpu b': 10, 'disk c': 20, since: 1 });
    expect(settled(24)).toEqual({ 'gpu a': 10, 'gpu b': 4, 'disk c': 20, since: 1 });
    expect(settled(13)).toEqual({ 'gpu a': 3, 'gpu b': 0, 'disk c': 20, since: 1 });
    expect(settled(9)).toEqual({ 'gpu a': 0, 'gpu b': 0, 'disk c': 20, since: 1 });
  });

  it('is not had for nothing by a credit that comes later', () => {
    const meters = [gpu('a', HIGHEST_PRICE, since(1, 0))];
    const entries = [{ at: 50, amountMicro: 1_000_000 }];
    const settlement = settle({ balanceMicro: 2_000_000, limits: [], entries, meters }, 100);
    expect(all(chargedTo(settlement))).toBe(2_000_000);
  });
});

const rates = fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: 0, max: HIGHEST_PRICE }));
const accounts = fc
  .record({
    balanceMicro: fc.integer({ min: -1_000, max: 5_000_000 }),
    meters: fc.array(fc.record({ rate: rates, meter: fc.constantFrom('gpu', 'disk') }), {
      minLength: 1,
      maxLength: 25,
    }),
  })
  .map(({ balanceMicro, meters }): Account => {
    const metered = meters.map(({ rate, meter }, index) => ({
      ...gpu(`instance ${(index * 7) % 25}`, rate, since(index, 0)),
      meter,
    }));
    return { balanceMicro, limits: [], entries: [], meters: metered };
  });

/** The account after a settlement. */
function after(account: Account, { bookings, intervals }: ReturnType<typeof settle>): Account {
  const balanceMicro = account.balanceMicro - bookings.reduce((sum, { chargedMicro }) => sum + chargedMicro, 0);
  const meters = account.meters.map((one) => ({
    ...one,
    settledMs: one.settledMs + (bookings.find(({ instanceId }) => instanceId === one.instanceId)?.ms ?? 0),
    intervals: one.intervals.map((interval) => ({
      ...interval,
      settledTo: intervals.find(({ id }) => id === interval.id)?.settledTo ?? interval.settledTo,
    })),
  }));
  return { ...account, balanceMicro, meters };
}

describe('a settlement', () => {
  it('never charges GPU time into debt', () => {
    fc.assert(
      fc.property(accounts, fc.integer({ min: 1, max: 60_000 }), (account, now) => {
        const { bookings } = settle(account, now);
        const charged = (wanted: string) =>
          bookings.reduce((sum, { meter, chargedMicro }) => sum + (meter === wanted ? chargedMicro : 0), 0);
        expect(bookings.every(({ chargedMicro }) => chargedMicro >= 0)).toBe(true);
        expect(charged('gpu')).toBeLessThanOrEqual(Math.max(account.balanceMicro, 0));
      }),
    );
  });

  it('comes to the same in pieces', () => {
    fc.assert(
      fc.property(accounts, fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1 }), (account, pauses) => {
        const whole: Record<string, number> = {};
        let [now, rest] = [0, account];
        for (const pause of pauses) {
          const settlement = settle(rest, (now += pause));
          for (const [key, micro] of Object.entries(chargedTo(settlement))) whole[key] = (whole[key] ?? 0) + micro;
          rest = after(rest, settlement);
        }
        expect(whole).toEqual(chargedTo(settle(account, now)));
      }),
    );
  });
});
