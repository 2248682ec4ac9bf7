import { useEffect, useRef, useState, type RefObject } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

/** What a chart takes from the styles: a canvas knows no custom property, so colours are read from elements that have them. */
export interface Look {
  /** Returns the colour of the element beside the chart with this `data-colour`. */
  colourOf: (name: string) => string;
  axis: Pick<UPlot.Axis, 'stroke' | 'grid' | 'ticks'>;
}

export interface Plot {
  options: Omit<UPlot.Options, 'width' | 'height'>;
  data: UPlot.AlignedData;
}

/** Draws a chart into the element of the reference, as wide as that is. It is drawn again when `make` or the theme changes. */
export function usePlot(height: number, make: (look: Look) => Plot): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  const isDark = useIsDark();
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const { options, data } = make(lookOf(element));
    const plot = new UPlot({ ...options, width: element.clientWidth, height }, data, element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [height, make, isDark]);
  return place;
}

function lookOf(place: HTMLElement): Look {
  const style = getComputedStyle(place);
  return {
    colourOf: (name) => getComputedStyle(place.parentElement?.querySelector(`[data-colour=${name}]`) ?? place).color,
    axis: { stroke: style.color, grid: { stroke: style.borderTopColor, width: 1 }, ticks: { show: false } },
  };
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

/** For charts by day: the axis has its ticks at midnights of UTC, as the days of the API have. */
export const DAYS_OF_UTC: Pick<UPlot.Options, 'tzDate'> = {
  tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
};

/** Steps of an axis of integers, such as micro-dollars: none is a part of one. */
export const WHOLE_STEPS = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();

/** Steps of an axis of bytes. */
export const BINARY_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);
