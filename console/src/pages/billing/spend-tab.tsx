import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { changedSearch } from '../../data/forms/changed-search.js';
import { itemsOf } from '../../data/api/pages.js';
import { DayInput } from '../../parts/forms/address-input.js';
import { Field, Select } from '../../parts/forms/field.js';
import { Money } from '../../parts/values/money.js';
import { Older } from '../../parts/controls/older.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { CsvButton } from './csv-button.js';
import styles from './page.module.css';
import { chargeSums, chargeTotal, csv, type ChargeSum } from './queries.js';
import { GROUPS, type Group } from './search.js';
import { sumOf, type Sum } from './sums.js';

const route = getRouteApi('/billing');
const TITLES: Readonly<Record<Group, string>> = {
  instance: 'instance',
  template: 'template',
  api_key: 'API key',
  member: 'who has deployed',
  label: 'label',
  day: 'day',
};
const CHOICES = GROUPS.map((value) => ({ value, label: TITLES[value] }));
const NAMELESS: Readonly<Partial<Record<Group, string>>> = { api_key: 'without an API key', label: 'without a label' };

/** What use has cost, added up by what it was used for. */
export function SpendTab() {
  const { by = 'instance', from, to } = route.useSearch();
  const navigate = route.useNavigate();
  const filter = { by, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const query = useInfiniteQuery(chargeSums(filter));
  // Where not all rows are shown, they do not add up to the total.
  const { data: total } = useQuery({ ...chargeTotal(filter), enabled: query.hasNextPage });
  const set = (fields: { by?: Group; from?: string | undefined; to?: string | undefined }, replace = false) =>
    void navigate({ search: (before) => changedSearch(before, fields), replace });
  return (
    <>
      <div className={styles.filters}>
        <Field label="Added up by">
          {(tied) => <Select {...tied} choices={CHOICES} value={by} onChoose={(next) => set({ by: next })} />}
        </Field>
        <Field label="From (UTC)">
          {(tied) => <DayInput {...tied} value={from} onWrite={(day, replace) => set({ from: day }, replace)} />}
        </Field>
        <Field label="To (UTC)">
          {(tied) => <DayInput {...tied} value={to} onWrite={(day, replace) => set({ to: day }, replace)} />}
        </Field>
        <CsvButton name={`spend-by-${by}.csv`} read={() => csv.sums(filter)} />
      </div>
      <Loaded query={query} rows={6}>
        {({ pages }) => {
          const [sums, by = 'instance'] = [itemsOf({ pages }), pages[0]?.by];
          if (sums.length === 0 && !query.hasNextPage) return <NoCharges />;
          return (
            <Sums by={by} sums={sums} total={query.hasNextPage ? total : sumOf(sums)} isWhole={!query.hasNextPage} />
          );
        }}
      </Loaded>
      <Older query={query}>Show more</Older>
    </>
  );
}

function NoCharges() {
  return (
    <Empty title="Nothing was charged in these days">
      Without dates, this is about the last 30 days. What runs now is charged up to each report of its host.
    </Empty>
  );
}

interface SumsProps {
  by: Group;
  sums: readonly ChargeSum[];
  /** Undefined: not read yet. */
  total: Sum | undefined;
  /** Whether all sums are shown. */
  isWhole: boolean;
}

function Sums({ by, sums, total, isWhole }: SumsProps) {
  const last = total ? [{ key: 'total', name: null, ...total, isTotal: true }] : [];
  const rows = [...sums.map((sum) => ({ ...sum, isTotal: false })), ...last];
  const totalTitle = isWhole ? 'Total' : 'Total, also of what is not shown';
  return (
    <Table
      label={`Spend by ${TITLES[by]}`}
      columns={[
        {
          title: TITLES[by],
          cell: (row) => (
            <span className={styles.where}>{row.isTotal ? <strong>{totalTitle}</strong> : nameIn(by, row)}</span>
          ),
        },
        { title: 'GPU', cell: ({ gpu_micro }) => <Money micro={gpu_micro} />, isNumber: true },
        { title: 'Disk', cell: ({ disk_micro }) => <Money micro={disk_micro} />, isNumber: true },
        { title: 'Total', cell: ({ total_micro }) => <Money micro={total_micro} />, isNumber: true },
      ]}
      rows={rows}
      keyOf={({ key, isTotal }) => (isTotal ? 'total' : `of ${key ?? ''}`)}
    />
  );
}

function nameIn(by: Group, { key, name }: Pick<ChargeSum, 'key' | 'name'>) {
  const words = name === null || name === '' ? (key ?? NAMELESS[by] ?? 'without a name') : name;
  if (by !== 'instance' || key === null) return words;
  return (
    <>
      <Link to="/instances/$id" params={{ id: key }}>
        {words}
      </Link>
      <Link className={styles.weak} to="/billing" search={{ tab: 'transactions', instance: key }}>
        its transactions
      </Link>
    </>
  );
}
