import { useRef, type ReactNode } from 'react';
import { classNames } from '../controls/class-names.js';
import { useMoreAside } from './more-aside.js';
import styles from '../table.module.css';

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ReactNode;
  /** Numbers, money and acts stand at the end of their column. */
  isNumber?: boolean;
}

interface TableProps<Row> {
  /** What the table shows, for those who do not see it. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** Rows that cannot be chosen are shown weaker. */
  isWeak?: (row: Row) => boolean;
}

/** A table. It scrolls in itself, and keeps its first column, which names the row. */
export function Table<Row>({ label, columns, rows, keyOf, isWeak }: TableProps<Row>) {
  const classOf = ({ isNumber }: Column<Row>) => classNames(isNumber && styles.number) || undefined;
  const frame = useRef<HTMLDivElement>(null);
  useMoreAside(frame);
  return (
    // Those who have no mouse scroll it by the keyboard.
    <div ref={frame} className={styles.frame} role="region" aria-label={label} tabIndex={0}>
      <table className={styles.table} aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" className={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} className={isWeak?.(row) ? styles.weak : undefined}>
              {columns.map((column, index) =>
                index === 0 ? (
                  <th key={column.title} scope="row" className={classOf(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.title} className={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
