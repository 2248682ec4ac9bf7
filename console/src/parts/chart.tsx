import { useCallback, useState } from 'react';
import type UPlot from 'uplot';
import { exactTime } from '../data/times.js';
import styles from './chart.module.css';
import { BINARY_STEPS, WHOLE_STEPS, usePlot, type Look, type Plot } from './plot.js';

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
  /** The name of a point on hover and in the table; otherwise its exact time. */
  nameOf?: (at: string) => string;
}

const HEIGHT = 180;
const STEPS = { binary: BINARY_STEPS, whole: WHOLE_STEPS };
const COLOURS = ['line1', 'line2', 'line3', 'line4'] as const;

type PlotProps = Pick<Required<ChartProps>, 'at' | 'lines' | 'unit' | 'nameOf'> & {
  max: ChartProps['max'] | undefined;
  steps: ChartProps['steps'] | undefined;
};

/** Lines over time, with the exact values on hover, and as a table for those who do not see them. */
export function Chart({ title, at, lines, unit, max, steps, nameOf = exactTime }: ChartProps) {
  const make = useCallback(
    (look: Look) => plotOf(look, { at, lines, unit, max, steps, nameOf }),
    [at, lines, unit, max, steps, nameOf],
  );
  const place = usePlot(HEIGHT, make);
  return (
    <figure className={styles.chart}>
      <figcaption>{title}</figcaption>
      {COLOURS.map((name) => (
        <span key={name} className={styles[name]} data-colour={name} hidden />
      ))}
      <div ref={place} className={styles.place} aria-hidden="true" />
      <Values {...{ title, at, lines, unit, nameOf }} />
    </figure>
  );
}

function plotOf({ colourOf, axis }: Look, { at, lines, unit, max, steps, nameOf }: PlotProps): Plot {
  const options = {
    cursor: { y: false, points: { size: 6 } },
    scales: {
      y: {
        range: (_plot: UPlot, low: number, high: number): [number, number] => [
          Math.min(0, low),
          max ?? (high > 0 ? high * 1.1 : 1),
        ],
      },
    },
    axes: [
      axis,
      {
        ...{ ...axis, size: 68, values: (_plot: UPlot, ticks: number[]) => ticks.map(unit) },
        ...(steps === undefined ? {} : { incrs: STEPS[steps] }),
      },
    ],
    series: [
      {
        value: (_plot: UPlot, seconds: number | null) =>
          seconds === null ? '' : nameOf(new Date(seconds * 1_000).toISOString()),
      },
      ...lines.map(({ name }, index) => ({
        ...{ label: name, stroke: colourOf(COLOURS[index % COLOURS.length] ?? ''), width: 2, points: { show: false } },
        value: (_plot: UPlot, value: number | null) => (value === null ? '' : unit(value)),
      })),
    ],
  } satisfies Plot['options'];
  return { options, data: [at.map((time) => Date.parse(time) / 1_000), ...lines.map(({ values }) => [...values])] };
}

function Values({ title, at, lines, unit, nameOf }: Omit<Required<ChartProps>, 'max' | 'steps'>) {
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
