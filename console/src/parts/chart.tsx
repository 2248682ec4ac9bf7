import { useEffect, useRef, useState } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { exactTime } from '../data/times.js';
import styles from './chart.module.css';

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
  /** Whether the values are bytes, whose axis has binary steps. */
  isBinary?: boolean;
}

const HEIGHT = 180;
const BINARY_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);
const COLOURS = ['line1', 'line2', 'line3', 'line4'] as const;

/** Lines over time, with the exact values on hover, and as a table for those who do not see them. */
export function Chart({ title, at, lines, unit, max, isBinary = false }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const isDark = useIsDark();
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const plot = new UPlot(
      optionsOf(element, { lines, unit, max, isBinary }),
      [at.map((time) => Date.parse(time) / 1_000), ...lines.map(({ values }) => [...values])],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [at, lines, unit, max, isBinary, isDark]);
  return (
    <figure className={styles.chart}>
      <figcaption>{title}</figcaption>
      {COLOURS.map((name) => (
        <span key={name} className={styles[name]} data-colour={name} hidden />
      ))}
      <div ref={place} className={styles.place} aria-hidden="true" />
      <Values {...{ title, at, lines, unit }} />
    </figure>
  );
}

/** Makes the options of a chart. A canvas knows no custom property: colours are read from elements that have them. */
function optionsOf(
  place: HTMLElement,
  { lines, unit, max, isBinary }: Pick<ChartProps, 'lines' | 'unit'> & { max: number | undefined; isBinary: boolean },
): UPlot.Options {
  const colourOf = (index: number) =>
    getComputedStyle(place.parentElement?.querySelector(`[data-colour=${COLOURS[index % COLOURS.length]}]`) ?? place)
      .color;
  const style = getComputedStyle(place);
  const axis = { stroke: style.color, grid: { stroke: style.borderTopColor, width: 1 }, ticks: { show: false } };
  return {
    width: place.clientWidth,
    height: HEIGHT,
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_plot, low, high) => [Math.min(0, low), max ?? (high > 0 ? high * 1.1 : 1)] } },
    axes: [
      axis,
      { ...axis, size: 68, ...(isBinary ? { incrs: BINARY_STEPS } : {}), values: (_plot, ticks) => ticks.map(unit) },
    ],
    series: [
      {
        value: (_plot, seconds: number | null) =>
          seconds === null ? '' : exactTime(new Date(seconds * 1_000).toISOString()),
      },
      ...lines.map(({ name }, index) => ({
        ...{ label: name, stroke: colourOf(index), width: 2, points: { show: false } },
        value: (_plot: UPlot, value: number | null) => (value === null ? '' : unit(value)),
      })),
    ],
  };
}

function Values({ title, at, lines, unit }: Omit<ChartProps, 'max' | 'isBinary'>) {
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
                  <th scope="row">{exactTime(time)}</th>
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

function useIsDark(): boolean {
  const [isDark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const note = () => setDark(query.matches);
    query.addEventListener('change', note);
    return () => query.removeEventListener('change', note);
  }, []);
  return isDark;
}
