import { useState } from 'react';
import { Money } from '../../parts/values/money.js';
import { Table } from '../../parts/layout/table.js';
import styles from './page.module.css';
import type { DailySpend } from './queries.js';
import { sumOf } from './sums.js';

/** The total of the days, and each day in figures: the chart for those who do not see it. */
export function DaysTable({ days }: { days: readonly DailySpend[] }) {
  const [isOpen, setOpen] = useState(false);
  const sum = sumOf(days);
  const rows = [...days].reverse().map((day) => ({ ...day, ...sumOf([day]) }));
  return (
    <>
      <p className={styles.total}>
        {days.length} days: <Money micro={sum.total_micro} />, of it GPU <Money micro={sum.gpu_micro} />, disk{' '}
        <Money micro={sum.disk_micro} />.
      </p>
      <details className={styles.details} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Each day in figures</summary>
        {isOpen && (
          <Table
            label="Spend of each day"
            columns={[
              { title: 'Day (UTC)', cell: ({ date }) => <span className={styles.day}>{date}</span> },
              { title: 'GPU', cell: ({ gpu_micro }) => <Money micro={gpu_micro} />, isNumber: true },
              { title: 'Disk', cell: ({ disk_micro }) => <Money micro={disk_micro} />, isNumber: true },
              { title: 'Total', cell: ({ total_micro }) => <Money micro={total_micro} />, isNumber: true },
            ]}
            rows={rows}
            keyOf={({ date }) => date}
          />
        )}
      </details>
    </>
  );
}
