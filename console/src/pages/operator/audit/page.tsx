import { getRouteApi, Link } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { Table } from '../../../parts/layout/table.js';
import { At } from '../../../parts/values/time.js';
import type { AuditEntry } from '../models.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { Details } from './details.js';
import { AuditFilters } from './filters.js';
import { filterOf, type AuditSearch } from './search.js';
import { Target } from './target.js';

const route = getRouteApi('/operator/audit');

export default function OperatorAuditPage() {
  const search = route.useSearch();
  const filter = filterOf(search);
  return (
    <Page title="Audit log" lead="What have operators done?">
      <AuditFilters key={`${search.by ?? ''} ${search.of ?? ''}`} search={search} />
      <Paged
        name={['audit-log', ...Object.entries(filter).flat()]}
        read={(query, signal) =>
          api.get('/v1/operator/audit-log', { params: { query: { ...query, ...filter } }, signal })
        }
        empty={<NothingFound isFiltered={Object.keys(filter).length > 0} />}
      >
        {(entries) => <Entries entries={entries} search={search} />}
      </Paged>
    </Page>
  );
}

function NothingFound({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered) return <Empty title="Nothing was done">Here is everything that operators do.</Empty>;
  return (
    <p role="status">
      Operators have done nothing like this. <Link to="/operator/audit">Show everything</Link>
    </p>
  );
}

/** The entries. Who did it leads to everything else by them; what it was done to has its page, and everything else that was done to it. */
function Entries({ entries, search }: { entries: readonly AuditEntry[]; search: AuditSearch }) {
  return (
    <Table
      label="What operators have done"
      rows={entries}
      keyOf={({ id }) => String(id)}
      columns={[
        {
          title: 'When',
          cell: ({ at }) => (
            <span className={styles.time}>
              <At at={at} />
            </span>
          ),
        },
        { title: 'Action', cell: ({ action }) => action },
        {
          title: 'By',
          cell: ({ actor_email }) => (
            <Link className={styles.text} to="/operator/audit" search={{ ...search, by: actor_email }}>
              {actor_email}
            </Link>
          ),
        },
        {
          title: 'To',
          cell: (entry) => (
            <span className={styles.text}>
              <Target entry={entry} />
              <Link
                className={styles.weak}
                to="/operator/audit"
                search={{ ...search, of: entry.subject }}
                aria-label={`only what was done to it: ${entry.subject}`}
              >
                only what was done to it
              </Link>
            </span>
          ),
        },
        { title: 'Details', cell: ({ details }) => <Details details={details} /> },
      ]}
    />
  );
}
