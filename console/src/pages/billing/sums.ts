import { paysFor } from '../../data/values/times.js';

const DAY_MS = 86_400_000;
/** How far ahead the chart looks. */
const AHEAD_MS = 30 * DAY_MS;

export interface Sum {
  gpu_micro: number;
  disk_micro: number;
  total_micro: number;
}

type Charges = Pick<Sum, 'gpu_micro' | 'disk_micro'>;

/** Adds up rows. Amounts are integers far below 2^53, so no sum is rounded. */
export function sumOf(rows: readonly Charges[]): Sum {
  const add = (pick: (row: Charges) => number) => rows.reduce((sum, row) => sum + pick(row), 0);
  const [gpu_micro, disk_micro] = [add((row) => row.gpu_micro), add((row) => row.disk_micro)];
  return { gpu_micro, disk_micro, total_micro: gpu_micro + disk_micro };
}

/** What the chart draws: for each time the total and the disk's part of its day, and the balance at what is charged now. */
export interface Series {
  /** Seconds since 1970. */
  at: number[];
  total: (number | null)[];
  disk: (number | null)[];
  balance: (number | null)[];
}

/**
 * Returns what the chart draws: the days as steps up to now, then the balance in a straight line to zero, or to where the chart ends.
 * Times are milliseconds since 1970.
 */
export function seriesOf(
  days: readonly (Charges & { date: string })[],
  balanceMicro: number,
  chargedMicro: number,
  now: number,
): Series {
  const starts = days.map(({ date }) => Date.parse(date));
  const totals = days.map(({ gpu_micro, disk_micro }) => gpu_micro + disk_micro);
  const disks = days.map(({ disk_micro }) => disk_micro);
  const nothing = days.map(() => null);
  // A clock that is behind must not bring the times out of order.
  const present = Math.max(now, (starts.at(-1) ?? now) + 1_000);
  const lastsMs = Math.min(paysFor(balanceMicro, chargedMicro) ?? AHEAD_MS, AHEAD_MS);
  const atEnd = Math.max(0, balanceMicro - (chargedMicro * lastsMs) / 3_600_000);
  const isDrawn = balanceMicro > 0 && chargedMicro > 0 && lastsMs > 0;
  const end = isDrawn ? [present + lastsMs] : [];
  return {
    at: [...starts, present, ...end].map((ms) => ms / 1_000),
    total: [...totals, totals.at(-1) ?? null, ...end.map(() => null)],
    disk: [...disks, disks.at(-1) ?? null, ...end.map(() => null)],
    balance: [...nothing, isDrawn ? balanceMicro : null, ...end.map(() => atEnd)],
  };
}
