import width from 'fast-string-width';
import { plain } from '../terminal/plain-text.js';

export interface Column<Row> {
  title: string;
  of: (row: Row) => string | number | null;
  align?: 'right';
  /** On a narrow terminal the column with the highest number is left out first; without one it always stays. */
  yields?: number;
}

const GAP = '  ';
const ELLIPSIS = '…';

/**
 * Returns rows as lines, the titles first. With `columns`, no line is wider: columns that yield are left out, then the widest are cut.
 * Without it every cell is whole. Cells can hold text of strangers.
 */
export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], available?: number): string[] {
  const cells = columns.map((column) => [column.title, ...rows.map((row) => plain(String(column.of(row) ?? '-')))]);
  const natural = cells.map((texts) => Math.max(...texts.map((text) => width(text))));
  const shown = available === undefined ? columns.map((_, index) => index) : thatFit(columns, natural, available);
  const widths = available === undefined ? natural : cut(natural, shown, available);
  return ['', ...rows].map((_, line) =>
    shown
      .map((index) => fill(cells[index]?.[line] ?? '', widths[index] ?? 0, columns[index]?.align))
      .join(GAP)
      .trimEnd(),
  );
}

const totalOf = (widths: readonly number[], shown: readonly number[]): number =>
  shown.reduce((sum, index) => sum + (widths[index] ?? 0), 0) + GAP.length * Math.max(0, shown.length - 1);

function thatFit<Row>(columns: readonly Column<Row>[], widths: readonly number[], available: number): number[] {
  const shown = columns.map((_, index) => index);
  const yielding = shown
    .filter((index) => columns[index]?.yields !== undefined)
    .sort((one, other) => (columns[other]?.yields ?? 0) - (columns[one]?.yields ?? 0));
  for (const index of yielding) {
    if (totalOf(widths, shown) <= available) break;
    shown.splice(shown.indexOf(index), 1);
  }
  return shown;
}

const NARROWEST = 4;

function cut(natural: readonly number[], shown: readonly number[], available: number): number[] {
  const widths = [...natural];
  while (totalOf(widths, shown) > available) {
    const widest = shown.reduce(
      (one, other) => ((widths[other] ?? 0) > (widths[one] ?? 0) ? other : one),
      shown[0] ?? 0,
    );
    if ((widths[widest] ?? 0) <= NARROWEST) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function fill(text: string, wide: number, align: 'right' | undefined): string {
  const fitting = truncate(text, wide);
  const space = ' '.repeat(Math.max(0, wide - width(fitting)));
  return align === 'right' ? space + fitting : fitting + space;
}

/** Returns text of at most this width; what is cut off becomes an ellipsis. */
export function truncate(text: string, wide: number): string {
  if (width(text) <= wide) return text;
  let kept = '';
  for (const character of text) {
    if (width(kept + character) > wide - 1) break;
    kept += character;
  }
  return kept + ELLIPSIS;
}
