import { useCallback, useState } from 'react';
import UPlot from 'uplot';
import { exactMoney } from '../../data/values/money.js';
import { shortDay } from '../../data/values/times.js';
import { Money } from '../../parts/values/money.js';
import { DAYS_OF_UTC, WHOLE_STEPS, usePlot, type Look, type Plot } from '../../parts/charts/plot.js';
import type { DailySpend } from './queries.js';
import styles from './spend-chart.module.css';
import { seriesOf, type Series } from './sums.js';

interface ChartProps {
  days: readonly DailySpend[];
  balanceMicro: number;
  chargedMicro: number;
  /** Milliseconds since 1970. */
  now: number;
}

const HEIGHT = 240;
// uPlot declares its enum for the compiler only: there is none at run time.
const RIGHT: UPlot.Axis.Side = 1;

/** Draws the spend of each day by GPU and disk, and the balance from now to where it is zero at what is charged now. */
export function SpendChart({ days, balanceMicro, chargedMicro, now }: ChartProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const make = useCallback(
    (look: Look) => plotOf(look, seriesOf(days, balanceMicro, chargedMicro, now), setChosen),
    [days, balanceMicro, chargedMicro, now],
  );
  const place = usePlot(HEIGHT, make);
  return (
    <figure className={styles.chart}>
      <figcaption className={styles.legend}>
        <Swatch name="gpu" words="GPU" />
        <Swatch name="disk" words="disk" />
        <Swatch name="balance" words="balance at what is charged now (right)" />
        <Readout day={chosen === null ? undefined : days[chosen]} />
      </figcaption>
      <div ref={place} className={styles.place} aria-hidden="true" />
    </figure>
  );
}

type Colour = 'gpu' | 'disk' | 'balance';

/** A colour and what it stands for. The chart reads its colours here: a canvas knows no custom property. */
function Swatch({ name, words }: { name: Colour; words: string }) {
  return (
    <span className={styles.key}>
      <span className={styles[name]} data-colour={name} aria-hidden="true" /> {words}
    </span>
  );
}

/** The exact figures of the day under the pointer. */
function Readout({ day }: { day: DailySpend | undefined }) {
  if (!day)
    return (
      <span className={styles.readout}>
        Days of UTC<span className={styles.hint}>. Point at one to read it</span>
      </span>
    );
  return (
    <span className={styles.readout}>
      {day.date} (UTC): GPU <Money micro={day.gpu_micro} />, disk <Money micro={day.disk_micro} />
    </span>
  );
}

function plotOf({ colourOf, axis }: Look, series: Series, choose: (index: number | null) => void): Plot {
  const { at, total, disk, balance } = series;
  const money = { incrs: WHOLE_STEPS, values: (_plot: UPlot, ticks: number[]) => ticks.map(exactMoney), size: 72 };
  const steps = UPlot.paths.stepped?.({ align: 1 });
  // Without a line: it would be drawn along zero on days without a charge.
  const area = { points: { show: false }, ...(steps ? { paths: steps } : {}) };
  const fromZero = {
    range: (_plot: UPlot, _low: number, high: number): [number, number] => [0, high > 0 ? high * 1.1 : 1_000_000],
  };
  const options: Plot['options'] = {
    ...DAYS_OF_UTC,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { setScale: false, x: false, y: false } },
    hooks: { setCursor: [({ cursor, data }) => choose(dayAt(cursor.idx, data[1] ?? []))] },
    scales: { x: { range: () => [at[0] ?? 0, at.at(-1) ?? 1] }, y: fromZero, balance: fromZero },
    axes: [
      { ...axis, size: 28, values: (_plot, ticks) => ticks.map(dayName) },
      { ...axis, ...money },
      { ...axis, ...money, scale: 'balance', side: RIGHT, grid: { show: false } },
    ],
    series: [
      {},
      { ...area, label: 'GPU', fill: colourOf('gpu') },
      { ...area, label: 'disk', fill: colourOf('disk') },
      {
        label: 'balance',
        scale: 'balance',
        stroke: colourOf('balance'),
        width: 2,
        dash: [6, 4],
        points: { show: false },
      },
    ],
  };
  return { options, data: [at, total, disk, balance] };
}

/** Returns the index of the day under the pointer; the last two points are now and later. */
function dayAt(index: number | null | undefined, totals: ArrayLike<unknown>): number | null {
  return index === null || index === undefined || totals[index] === null ? null : index;
}

function dayName(seconds: number): string {
  return shortDay(new Date(seconds * 1_000).toISOString(), 'UTC');
}
