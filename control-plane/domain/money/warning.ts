import { HOUR_MS } from '../../../shared/time.js';
import { AUTO_DESTROY } from '../deadlines.js';
import type { Metered } from './metered.js';
import { lastsUntil, type Account } from './settlement.js';

/** How many hours before the balance is used up, and before disks are destroyed, an organization is warned. */
const BALANCE_HOURS = [1, 4, 24] as const;
const DISK_HOURS = [1, 6, 24] as const;

/** A danger that comes nearer. */
export interface Danger {
  /** When it comes, in milliseconds since 1970. */
  at: number;
  /** The shortest warning time that has begun. */
  hours: number;
}

/** Returns when the balance is used up, if that is within a day; null: it is not, or it is used up already. */
export function balanceDanger(account: Account, now: number): Danger | null {
  if (account.balanceMicro <= 0) return null;
  const at = lastsUntil(account, now, now + last(BALANCE_HOURS) * HOUR_MS);
  return at === null || at <= now ? null : dangerAt(at, now, BALANCE_HOURS);
}

/**
 * Returns when the disks of an organization are destroyed that has had no balance since `exhaustedSince`, if that is within a day; null:
 * it is not.
 */
export function diskDanger(account: Account, exhaustedSince: number | null, now: number): Danger | null {
  if (exhaustedSince === null) return null;
  const { afterMs, atMicro } = AUTO_DESTROY;
  const horizon = now + last(DISK_HOURS) * HOUR_MS;
  // Only disks are charged into debt.
  const meters = account.meters.filter(({ meter }) => meter === 'disk');
  const debt = { ...account, meters, balanceMicro: account.balanceMicro - atMicro };
  const inDebtAt = debt.balanceMicro <= 0 ? now : lastsUntil(debt, now, horizon);
  return inDebtAt === null ? null : dangerAt(Math.max(exhaustedSince + afterMs, inDebtAt), now, DISK_HOURS);
}

/**
 * Returns the hours of which an organization counts as warned from now on; null: of none. A host that is silent makes no danger, because
 * its time is not charged, but takes none away, because it can come back. Nor does a pause in which nothing is charged.
 */
export function warnedHours(
  account: Account,
  warned: number | null,
  danger: Danger | null,
  now: number,
): number | null {
  const told = Math.min(warned ?? Infinity, danger?.hours ?? Infinity);
  if (told === Infinity) return null;
  if (account.balanceMicro <= 0) return BALANCE_HOURS[0];
  const possible = { ...account, meters: account.meters.map(withoutSilence) };
  const at = lastsUntil(possible, now);
  if (at === null) return told;
  const nearest = dangerAt(at, now, BALANCE_HOURS);
  return nearest && Math.max(nearest.hours, told);
}

/**
 * Returns the hours of which an organization counts as warned of its disks from now on; null: of none. A host that is silent takes no
 * danger away, because its disks can be there.
 */
export function warnedDiskHours(
  account: Account,
  exhaustedSince: number | null,
  warned: number | null,
  now: number,
): number | null {
  const possible = { ...account, meters: account.meters.map(withoutSilence) };
  if (diskDanger(possible, exhaustedSince, now) === null) return null;
  return diskDanger(account, exhaustedSince, now)?.hours ?? warned;
}

function withoutSilence(metered: Metered): Metered {
  return { ...metered, intervals: metered.intervals.map((interval) => ({ ...interval, beyond: 'runs' })) };
}

function dangerAt(at: number, now: number, steps: readonly number[]): Danger | null {
  const hours = steps.find((step) => at - now <= step * HOUR_MS);
  return hours === undefined ? null : { at, hours };
}

/** Returns when the next warning of disks is due after one, if nothing changes; null: no other follows. */
export function nextDiskWarning({ at, hours }: Danger): number | null {
  const next = DISK_HOURS.findLast((step) => step < hours);
  return next === undefined ? null : at - next * HOUR_MS;
}

function last(steps: readonly number[]): number {
  return steps.at(-1) ?? 0;
}

/** Tells whether a danger is worth a warning after the one of `warned` hours: it is nearer, or there was none. */
export function isNews(warned: number | null, danger: Danger | null): danger is Danger {
  return danger !== null && (warned === null || danger.hours < warned);
}
