import fc from 'fast-check';
import { expect, it } from 'vitest';
import { concernsOf } from '../../console/src/data/live/concerns.js';
import { charge } from '../../control-plane/domain/money/charge.js';
import { exactMoney, hourlyMoney, parseMoney, priceOf, typedMoney } from '../../console/src/data/values/money.js';
import { bytes, cpuCores } from '../../client/text/sizes.js';
import {
  duration,
  exactDuration,
  exactTime,
  lasts,
  paysFor,
  relativeTime,
  shortTime,
} from '../../console/src/data/values/times.js';

/** Returns words as a duration has them: no line breaks within. */
const unbroken = (words: string) => words.replaceAll(' ', '\u00a0');
const micros = fc.integer({ min: 0, max: 10 ** 12 });

it('shows every digit of an amount, and no others', () => {
  const shown = [0, 500_000, 1_203_400, -500_001, 1_000_000_000, 1].map(exactMoney);
  expect(shown).toEqual(['$0.00', '$0.50', '$1.2034', '−$0.500001', '$1,000.00', '$0.000001']);
  expect(hourlyMoney(1_200_000)).toBe('$1.20/h');
  fc.assert(
    fc.property(fc.integer({ min: -(10 ** 15), max: 10 ** 15 }), (micro) => {
      const [, sign, dollars = '', digits = ''] = /^(−?)\$([\d,]+)\.(\d{2,6})$/.exec(exactMoney(micro)) ?? [];
      const amount = BigInt(dollars.replaceAll(',', '')) * 1_000_000n + BigInt(digits.padEnd(6, '0'));
      expect(Number(sign === '' ? amount : -amount)).toBe(micro);
      expect(digits.length === 2 || !digits.endsWith('0')).toBe(true);
    }),
  );
});

it('reads back the amount that it has shown, and nothing that is none', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 999_999_999_999_999 }), (micro) => {
      expect(parseMoney(typedMoney(micro))).toBe(micro);
      expect(parseMoney(exactMoney(micro))).toBe(micro);
    }),
  );
  for (const text of ['', 'x', '1.', '.5', '-1', '1.0000001', '1e3', '1 2', '$', '1,5', '12,50', '1,0000', '1.000,5'])
    expect(parseMoney(text)).toBeUndefined();
});

it('prices a time as the control plane does, and shows each millisecond of it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 ** 10 }), fc.integer({ min: 0, max: 10 ** 11 }), (rate, ms) => {
      expect(priceOf(rate, ms)).toBe(charge(rate, ms));
    }),
  );
  expect([0, 5, 61_000, 7_384_005].map(exactDuration)).toEqual(['0 s', '0.005 s', '1 min 1 s', '2 h 3 min 4.005 s']);
});

it('never says that a duration is longer than it is, or less than half of it', () => {
  expect([0, 999, 12_000, 61_000, 22_800_000, 90_000_000, 86_400_000].map(duration)).toEqual(
    ['0 s', '0 s', '12 s', '1 min 1 s', '6 h 20 min', '1 d 1 h', '1 d'].map(unbroken),
  );
  const sizes: Record<string, number> = { d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000 };
  fc.assert(
    fc.property(fc.integer({ min: 1_000, max: 10 ** 12 }), (ms) => {
      const parts = duration(ms).match(/\d+\u00a0[a-z]+/g) ?? [];
      const told = parts.reduce((sum, part) => sum + parseInt(part) * (sizes[part.replace(/\d+\u00a0/, '')] ?? NaN), 0);
      expect(told).toBeLessThanOrEqual(ms);
      expect(told).toBeGreaterThan(ms / 2);
    }),
  );
});

it('says how long a balance lasts as the control plane does: never longer than it pays', () => {
  const now = Date.parse('2026-11-24T12:00:00.000Z');
  const said = (until: string | null, balanceMicro = 1_000_000, chargedMicro = 500_000) =>
    lasts({ balanceMicro, chargedMicro, until }, now);
  expect(said('2026-11-24T12:00:00.000Z')).toBe('used up');
  expect(said('2026-11-24T18:20:59.000Z')).toBe(unbroken('6 h 20 min'));
  // Null: nothing is charged, an instance is on its way and not charged yet, or the end is beyond what the control plane looks at.
  expect(said(null, 1_000_000, 0)).toBe('no charges');
  expect(said(null)).toBe(unbroken('2 h'));
  expect(said(null, 10_000_000, 10)).toBe('more than 100 years');
  expect(paysFor(1, 0)).toBeUndefined();
  expect(paysFor(-1, 1)).toBe(0);
  fc.assert(
    fc.property(micros, fc.integer({ min: 1_000, max: 10 ** 10 }), (balance, burn) => {
      const ms = BigInt(paysFor(balance, burn) ?? -1);
      expect(ms * BigInt(burn) <= BigInt(balance) * 3_600_000n).toBe(true);
      expect((ms + 1n) * BigInt(burn) > BigInt(balance) * 3_600_000n).toBe(true);
    }),
  );
});

it('says times relative to now, and exactly', () => {
  const now = Date.parse('2026-11-24T12:00:00.000Z');
  const at = (ms: number) => new Date(now + ms).toISOString();
  expect([0, -4_000, -254_000, 10_900_000, -86_400_000].map((ms) => relativeTime(at(ms), now))).toEqual([
    'now',
    'now',
    '4 min ago',
    'in 3 h',
    '1 d ago',
  ]);
  expect(exactTime(at(0), 'Europe/Berlin')).toBe('2026-11-24 13:00:00 CET');
  expect([0, 43_200_000, 9 * 86_400_000, -400 * 86_400_000].map((ms) => shortTime(at(ms), now, 'UTC'))).toEqual([
    '12:00',
    'Wed 00:00',
    '3 Dec 12:00',
    '20 Oct 2025 12:00',
  ]);
});

it('shows sizes in binary units', () => {
  expect([0, 1_023, 1_024, 1_536, 80 * 2 ** 30].map(bytes)).toEqual(['0 B', '1023 B', '1.0 KiB', '1.5 KiB', '80 GiB']);
});

it('shows parts of a processor core, and never more than there are', () => {
  expect([0.1, 0.25, 0.29, 1, 21.333, 2.999, 64].map(cpuCores)).toEqual([
    '0.1 CPU cores',
    '0.25 CPU cores',
    '0.29 CPU cores',
    '1 CPU core',
    '21.33 CPU cores',
    '2.99 CPU cores',
    '64 CPU cores',
  ]);
});

it('knows what an event makes old', () => {
  const subject = 'instances/0b8f6a3e-3c1d-4a53-8f59-0e6f8b3c2d11';
  const id = subject.slice(10);
  expect(concernsOf({ type: 'instance.progress', subject })).toEqual([['instance', id, 'events']]);
  expect(concernsOf({ type: 'instance.status_changed', subject })).toContainEqual(['instance', id]);
  expect(concernsOf({ type: 'billing.paid', subject: 'x' })).toContainEqual(['organization']);
  // A later release can have others.
  expect(concernsOf({ type: 'else.happened' as 'billing.paid', subject: 'x' })).toEqual([]);
});
