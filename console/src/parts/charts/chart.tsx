import { useCallback, useState } from 'react';
import type UPlot from 'uplot';
import { exactTime, tickName } from '../../data/values/times.js';
import styles from '../chart.module.css';
import { withGaps } from './gaps.js';
import { BINARY_STEPS, DAYS_OF_UTC, WHOLE_STEPS, usePlot, type Look, type Plot } from './plot.js';

export interface Line {
  name: string;
  values: readonly (number | null)[];
}

interface ChartProps {
  title: string;
  /** Times of the values, in ISO 8601. */
  at: readonly string[];
  lines: readonly Line[];
  /** Shows a value with its unit. */
  unit: (value: number) => string;
  /** The largest value of the axis; otherwise the largest that there is. */
  max?: number;
  /** The steps of the axis: `binary` for bytes, `whole` for micro-dollars; otherwise any. */
  steps?: keyof typeof STEPS;
  /** Whether each value is that of a day of UTC; otherwise of a time. */
  byDay?: boolean;
  /** How far apart the values are where none is missing. Nothing is drawn over a longer gap. */
  stepSeconds?: number;
  /** The first and the last second of the axis; otherwise those of the values. */
  span?: readonly [from: number, to: number] | undefined;
}

const HEIGHT = 180;
const STEPS = { binary: BINARY_STEPS, whole: WHOLE_STEPS };
const COLOURS = ['line1', 'line2', 'line3', 'line4', 'line5', 'line6', 'line7', 'line8'] as const;
/** What tells the lines apart whose colour another one has: those after the eighth. */
const DASH = [6, 4];

/** The name of a value on hover and in the table. */
type NameOf = (at: string) => string;
const dayOf: NameOf = (at) => at.slice(0, 10);

type PlotProps = Pick<ChartProps, 'at' | 'lines' | 'unit'> & {
  [Name in 'max' | 'steps' | 'stepSeconds' | 'span']: ChartProps[Name] | undefined;
} & { byDay: boolean; nameOf: NameOf };

/** Lines over time, with the exact values on hover, and as a table for those who do not see them. */
export function Chart({ title, at, lines, unit, max, steps, byDay = false, stepSeconds, span }: ChartProps) {
  const nameOf: NameOf = byDay ? dayOf : exactTime;
  const make = useCallback(
    (look: Look) => plotOf(look, { at, lines, unit, max, steps, byDay, stepSeconds, span, nameOf }),
    [at, lines, unit, max, steps, byDay, stepSeconds, span, nameOf],
  );
  const place = usePlot(HEIGHT, make);
  return (
    <figure className={styles.chart}>
      <figcaption>{title}</figcaption>
      {COLOURS.map((name) => (
        <span key={name} className={styles[name]} data-colour={name} hidden />
      ))}
      <div ref={place} className={styles.place} aria-hidden="true" />
      <Values title={title} at={at} lines={lines} unit={unit} nameOf={nameOf} />
    </figure>
  );
}

function plotOf({ colourOf, axis }: Look, props: PlotProps): Plot {
  const { lines, unit, max, steps, byDay, span, nameOf } = props;
  const seconds = props.at.map((time) => Date.parse(time) / 1_000);
  const timeZone = byDay ? 'UTC' : undefined;
  const ticksOf = (_plot: UPlot, ticks: number[], _axis: number, _space: number, step: number) =>
    ticks.map((seconds) => tickName(seconds, step, timeZone));
  const options = {
    ...(byDay ? DAYS_OF_UTC : {}),
    cursor: { y: false, points: { size: 6 } },
    // The first series is the time.
    legend: { markers: { dash: (_plot: UPlot, series: number) => (series > COLOURS.length ? 'dashed' : 'solid') } },
    // Without a pointer on it, the legend has the newest values.
    hooks: { ready: [showNewest], setLegend: [showNewest] },
    scales: {
      ...(span === undefined
        ? {}
        : {
            x: {
              // Who has zoomed in sees what they have chosen.
              range: (_plot: UPlot, low: number, high: number): [number, number] =>
                low === seconds[0] && high === seconds.at(-1) ? [span[0], span[1]] : [low, high],
            },
          }),
      y: {
        range: (_plot: UPlot, low: number, high: number): [number, number] => [
          Math.min(0, low),
          max ?? (high > 0 ? high * 1.1 : 1),
        ],
      },
    },
    axes: [
      { ...axis, values: ticksOf },
      {
        ...axis,
        size: 68,
        values: (_plot: UPlot, ticks: number[]) => ticks.map(unit),
        ...(steps === undefined ? {} : { incrs: STEPS[steps] }),
      },
    ],
    series: [
      {
        value: (_plot: UPlot, seconds: number | null) =>
          seconds === null ? '' : nameOf(new Date(seconds * 1_000).toISOString()),
      },
      ...lines.map(({ name }, index) => ({
        label: name,
        stroke: colourOf(COLOURS[index % COLOURS.length] ?? ''),
        width: 2,
        points: { show: false },
        ...(index < COLOURS.length ? {} : { dash: DASH }),
        value: (_plot: UPlot, value: number | null) => (value === null ? '' : unit(value)),
      })),
    ],
  } satisfies Plot['options'];
  const values = lines.map((line) => line.values);
  return {
    options,
    data:
      props.stepSeconds === undefined
        ? [seconds, ...values.map((line) => [...line])]
        : withGaps(seconds, values, props.stepSeconds),
  };
}

function showNewest(plot: UPlot): void {
  const [, ...lines] = plot.data;
  const newest = Math.max(...lines.map((line) => line.findLastIndex((value) => value != null)));
  if (plot.legend.idx == null && newest >= 0) plot.setLegend({ idx: newest }, false);
}

function Values({
  title,
  at,
  lines,
  unit,
  nameOf,
}: Pick<ChartProps, 'title' | 'at' | 'lines' | 'unit'> & { nameOf: NameOf }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title} as a table</summary>
      {isOpen && (
        <div className={styles.values} tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {lines.map(({ name }) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {at.map((time, index) => (
                <tr key={time}>
                  <th scope="row">{nameOf(time)}</th>
                  {lines.map(({ name, values }) => (
                    <td key={name}>{valueOf(values[index], unit)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

function valueOf(value: number | null | undefined, unit: ChartProps['unit']): string {
  return value === null || value === undefined ? 'not measured' : unit(value);
}
