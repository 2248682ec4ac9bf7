import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Transaction } from '../../data/api/models.js';
import { exactTime } from '../../data/values/times.js';
import { LinkButton } from '../../parts/controls/button.js';
import { Field, Select } from '../../parts/forms/field.js';
import { InstanceLink, useNamesPending } from '../../parts/instances/instance-link.js';
import { Money } from '../../parts/values/money.js';
import { Empty, Loaded, Skeleton } from '../../parts/controls/states.js';
import { Table, type Column } from '../../parts/layout/table.js';
import { CsvButton } from './csv-button.js';
import styles from './page.module.css';
import { csv, transactions } from './queries.js';
import { KINDS, type Kind } from './search.js';

const route = getRouteApi('/billing');
const CHOICES: readonly { value: Kind | 'all'; label: string }[] = [
  { value: 'all', label: 'everything' },
  ...KINDS.map((value) => ({ value, label: `${value}s` })),
];

/** Everything that has changed the balance, newest first. */
export function TransactionsTab() {
  const { kind, instance, cursor } = route.useSearch();
  const navigate = route.useNavigate();
  const filter = { ...(kind ? { kind } : {}), ...(instance === undefined ? {} : { instance_id: instance }) };
  const query = useQuery(transactions(filter, cursor));
  const isNaming = useNamesPending();
  return (
    <>
      <div className={styles.filters}>
        <Field label="Kind">
          {(tied) => (
            <Select
              {...tied}
              choices={CHOICES}
              value={kind ?? 'all'}
              onChoose={(next) =>
                void navigate({
                  search: ({ cursor: _, kind: __, ...rest }) => (next === 'all' ? rest : { ...rest, kind: next }),
                })
              }
            />
          )}
        </Field>
        {instance !== undefined && (
          <LinkButton to="/billing" search={({ instance: _, cursor: __, ...rest }) => rest}>
            Show those of every instance
          </LinkButton>
        )}
        <CsvButton name="transactions.csv" read={() => csv.transactions(filter)} />
      </div>
      <Loaded query={query} rows={8}>
        {({ items, next_cursor }) =>
          isNaming ? (
            <Skeleton rows={8} />
          ) : items.length === 0 ? (
            <Empty title="There are no transactions here">
              Payments, credits and charges stand here, each with its exact amount.
            </Empty>
          ) : (
            <Ledger items={items} next={next_cursor ?? null} isFirst={cursor === undefined} />
          )
        }
      </Loaded>
    </>
  );
}

const COLUMNS: readonly Column<Transaction>[] = [
  {
    title: 'When',
    cell: ({ created_at }) => <time dateTime={created_at}>{exactTime(created_at)}</time>,
  },
  // Beside its time, a phone shows it whole.
  { title: 'Amount', cell: ({ amount_micro }) => <Money micro={amount_micro} />, isNumber: true },
  {
    title: 'What',
    cell: ({ kind, meter }) => (
      <span className={styles.kind}>{meter === null ? kind : `${kind} for ${meter === 'gpu' ? 'GPU' : meter}`}</span>
    ),
  },
  {
    title: 'For',
    cell: ({ instance_id, reason }) =>
      instance_id === null ? <span className={styles.reason}>{reason}</span> : <InstanceLink id={instance_id} />,
  },
];

function Ledger({ items, next, isFirst }: { items: readonly Transaction[]; next: string | null; isFirst: boolean }) {
  const sum = items.reduce((total, { amount_micro }) => total + amount_micro, 0);
  return (
    <>
      <Table label="Transactions" columns={COLUMNS} rows={items} keyOf={({ id }) => id} />
      <nav className={styles.pages} aria-label="Pages of the transactions">
        <p>
          These {items.length} add up to <Money micro={sum} />.
        </p>
        <span className={styles.buttons}>
          {!isFirst && (
            <LinkButton to="/billing" search={({ cursor: _, ...rest }) => rest}>
              Newest
            </LinkButton>
          )}
          {next !== null && (
            <LinkButton to="/billing" search={(before) => ({ ...before, cursor: next })}>
              Older
            </LinkButton>
          )}
        </span>
      </nav>
    </>
  );
}
