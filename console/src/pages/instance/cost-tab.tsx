import { useInfiniteQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import type { Instance, Transaction } from '../../data/api/models.js';
import { inPages, itemsOf } from '../../data/api/pages.js';
import { Money } from '../../parts/values/money.js';
import { Older } from '../../parts/controls/older.js';
import { Section } from '../../parts/layout/page.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { Table, type Column } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import { MeterIntervals } from './meter-intervals.js';
import styles from './page.module.css';

/** Charges are posted without an event of their own. */
const AGAIN_MS = 60_000;

const COLUMNS: readonly Column<Transaction>[] = [
  { title: 'Charged', cell: ({ created_at }) => <Ago at={created_at} /> },
  { title: 'For', cell: ({ meter, reason }) => (meter === 'gpu' ? 'GPU time' : meter === 'disk' ? 'Disk' : reason) },
  { title: 'Amount', cell: ({ amount_micro }) => <Money micro={-amount_micro} />, isNumber: true },
];

/** The charges of an instance, newest first. */
const chargesFor = (id: string) =>
  inPages(
    ['billing', 'charges', id],
    (page, signal) => api.get('/v1/billing/transactions', { params: { query: { ...page, instance_id: id } }, signal }),
    { refetchInterval: AGAIN_MS },
  );

/** Every charge of the instance, whose sum is what it has cost, and the runs that they are for. */
export function CostTab({ instance }: { instance: Instance }) {
  const query = useInfiniteQuery(chargesFor(instance.id));
  return (
    <Loaded query={query}>
      {(pages) => {
        const charges = itemsOf(pages);
        if (charges.length === 0) return <NoCharges />;
        return (
          <>
            <p className={styles.total}>
              Charged so far:{' '}
              <strong>
                <Money micro={query.hasNextPage ? instance.spend_micro : sumOf(charges)} />
              </strong>
            </p>
            <MeterIntervals instance={instance} />
            <Section title="Charges">
              <Table label="Charges" columns={COLUMNS} rows={charges} keyOf={(charge) => charge.id} />
              <Older query={query}>Show older charges</Older>
            </Section>
          </>
        );
      }}
    </Loaded>
  );
}

function NoCharges() {
  return (
    <Empty title="Nothing was charged yet">
      GPU time is charged while the instance runs, its disk while it is stopped.
    </Empty>
  );
}

function sumOf(charges: readonly Transaction[]): number {
  return charges.reduce((sum, { amount_micro }) => sum - amount_micro, 0);
}
