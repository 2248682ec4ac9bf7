import { getRouteApi, Link } from '@tanstack/react-router';
import { api } from '../../../../data/api/api.js';
import { changedSearch } from '../../../../data/forms/changed-search.js';
import { Field, Select } from '../../../../parts/forms/field.js';
import { Money } from '../../../../parts/values/money.js';
import { Page } from '../../../../parts/layout/page.js';
import { Empty } from '../../../../parts/controls/states.js';
import { Table } from '../../../../parts/layout/table.js';
import { MachineLink } from '../../links.js';
import { MachineFilter } from '../../machine-filter.js';
import type { Revenue } from '../../models.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';
import { MoneyTabs } from '../tabs.js';
import { DAYS, type RevenueSearch } from './search.js';

const route = getRouteApi('/operator/money/revenue');

export default function RevenuePage() {
  const search = route.useSearch();
  const { days = 30, machine: machine_id } = search;
  return (
    <Page title="Revenue by machine" lead="What was charged for each machine on each day of use?">
      <MoneyTabs shown="revenue" />
      <p className={styles.prose}>
        Days are in UTC. Credits are not subtracted. What a host reports late is added to the day of the use.
      </p>
      <Filters search={search} />
      <Paged
        name={['machine-days', String(days), machine_id ?? '']}
        read={(query, signal) =>
          api.get('/v1/operator/revenue', {
            params: {
              query: {
                ...query,
                days,
                ...(machine_id !== undefined && { machine_id }),
              },
            },
            signal,
          })
        }
        empty={<Empty title="Nothing was charged in these days">What runs is charged as its host reports it.</Empty>}
      >
        {(rows) => <MachineDays rows={rows} />}
      </Paged>
    </Page>
  );
}

function Filters({ search }: { search: RevenueSearch }) {
  const navigate = route.useNavigate();
  const { days = 30, machine } = search;
  return (
    <div className={styles.filter}>
      <Field label="Days">
        {(tied) => (
          <Select
            {...tied}
            choices={DAYS.map((each) => ({ value: String(each), label: `the last ${each}` }))}
            value={String(days)}
            onChoose={(value) =>
              void navigate({ search: changedSearch(search, { days: DAYS.find((each) => String(each) === value) }) })
            }
          />
        )}
      </Field>
      {machine !== undefined && (
        <MachineFilter
          id={machine}
          onTakeAway={() => void navigate({ search: changedSearch(search, { machine: undefined }) })}
        />
      )}
    </div>
  );
}

function MachineDays({ rows }: { rows: readonly Revenue[] }) {
  return (
    <Table
      label="Revenue by machine and day"
      rows={rows}
      keyOf={({ date, machine_id }) => `${date} ${machine_id}`}
      columns={[
        { title: 'Day', cell: ({ date }) => <span className={styles.time}>{date}</span> },
        {
          title: 'Machine',
          cell: (row) => (
            <>
              <MachineLink {...row} />
              <Link
                className={styles.weak}
                to="/operator/money/revenue"
                search={(before: RevenueSearch) => ({ ...before, machine: row.machine_id })}
                aria-label={`only this machine: ${row.machine_name}`}
              >
                only this machine
              </Link>
            </>
          ),
        },
        { title: 'GPU time', cell: ({ gpu_micro }) => <Money micro={gpu_micro} />, isNumber: true },
        { title: 'Disks', cell: ({ disk_micro }) => <Money micro={disk_micro} />, isNumber: true },
        {
          title: 'Both',
          cell: ({ gpu_micro, disk_micro }) => <Money micro={gpu_micro + disk_micro} />,
          isNumber: true,
        },
      ]}
    />
  );
}
