import { useQuery } from '@tanstack/react-query';
import { api } from '../../data/api.js';
import type { Instance, Transaction } from '../../data/models.js';
import { Money } from '../../parts/money.js';
import { Section } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { Ago } from '../../parts/time.js';
import { MeterIntervals } from './meter-intervals.js';
import styles from './page.module.css';

const AT_MOST = 200;
/** Charges are posted without an event of their own. */
const AGAIN_MS = 60_000;

const COLUMNS: readonly Column<Transaction>[] = [
  { title: 'Charged', cell: ({ created_at }) => <Ago at={created_at} /> },
  { title: 'For', cell: ({ meter, reason }) => (meter === 'gpu' ? 'GPU time' : meter === 'disk' ? 'Disk' : reason) },
  { title: 'Amount', cell: ({ amount_micro }) => <Money micro={-amount_micro} />, isNumber: true },
];

/** Every charge of the instance, whose sum is what it has cost, and the runs that they are for. */
export function CostTab({ instance }: { instance: Instance }) {
  const { id, spend_micro } = instance;
  const query = useQuery({
    queryKey: ['billing', 'transactions', { instance: id }],
    queryFn: async ({ signal }) => {
      const params = { query: { instance_id: id, limit: AT_MOST } };
      return (await api.get('/v1/billing/transactions', { params, signal })).items;
    },
    refetchInterval: AGAIN_MS,
  });
  return (
    <Loaded query={query}>
      {(charges) =>
        charges.length === 0 ? (
          <Empty title="Nothing was charged yet">
            GPU time is charged while the instance runs, its disk while it is stopped.
          </Empty>
        ) : (
          <>
            <p className={styles.total}>
              Charged so far:{' '}
              <strong>
                <Money micro={charges.length < AT_MOST ? sumOf(charges) : spend_micro} />
              </strong>
              {charges.length < AT_MOST ? '' : `. Below are the newest ${AT_MOST} charges.`}
            </p>
            <MeterIntervals instance={instance} />
            <Section title="Charges">
              <Table label="Charges" columns={COLUMNS} rows={charges} keyOf={(charge) => charge.id} />
            </Section>
          </>
        )
      }
    </Loaded>
  );
}

function sumOf(charges: readonly Transaction[]): number {
  return charges.reduce((sum, { amount_micro }) => sum - amount_micro, 0);
}
