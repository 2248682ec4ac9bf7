import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { exactMoney } from '../../data/values/money.js';
import { Money } from '../../parts/values/money.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded, Skeleton } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import type { DailyRevenue } from './models.js';
import styles from './operator.module.css';
import { revenue } from './queries.js';

const Chart = lazy(async () => ({ default: (await import('../../parts/charts/chart.js')).Chart }));

/** What was charged on each day, and on which GPUs that rests. */
export function Revenue() {
  const query = useQuery(revenue);
  return (
    <Section title="Revenue by UTC day">
      <Loaded query={query} rows={4}>
        {({ at, lines, days, models }) =>
          days.every(({ gpu_micro, disk_micro }) => gpu_micro + disk_micro === 0) ? (
            <p className={styles.weak}>Nothing was charged in the last {days.length} days.</p>
          ) : (
            <>
              <Suspense fallback={<Skeleton rows={4} />}>
                <Chart title="Revenue" at={at} lines={lines} unit={exactMoney} steps="whole" byDay />
              </Suspense>
              <RestsOn days={days} models={models} />
            </>
          )
        }
      </Loaded>
    </Section>
  );
}

function RestsOn({ days, models }: Pick<DailyRevenue, 'days' | 'models'>) {
  const day = days.at(-2);
  if (!day || models.length === 0)
    return <p className={styles.note}>Nothing was charged on the last whole day{day && `, ${day.date}`}.</p>;
  return (
    <>
      <p className={styles.note}>
        <Money micro={day.gpu_micro + day.disk_micro} /> on {day.date}, the last whole day, for the use of{' '}
        {day.machines} {day.machines === 1 ? 'machine' : 'machines'}. It rests on these GPUs. A late usage report adds
        to a past day; credits are not subtracted.
      </p>
      <Table
        label="Revenue of the last whole day by GPU model"
        rows={models}
        keyOf={({ gpu_model }) => gpu_model ?? ''}
        columns={[
          {
            title: 'Model',
            cell: ({ gpu_model }) => <span className={styles.name}>{gpu_model ?? 'others, and removed machines'}</span>,
          },
          { title: 'Machines', cell: ({ machines }) => machines, isNumber: true },
          { title: 'GPU time', cell: ({ gpu_micro }) => <Money micro={gpu_micro} />, isNumber: true },
          { title: 'Disks', cell: ({ disk_micro }) => <Money micro={disk_micro} />, isNumber: true },
          {
            title: 'All',
            cell: ({ gpu_micro, disk_micro }) => <Money micro={gpu_micro + disk_micro} />,
            isNumber: true,
          },
        ]}
      />
    </>
  );
}
