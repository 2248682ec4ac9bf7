import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useAct } from '../../../data/act.js';
import { api } from '../../../data/api.js';
import { saveFile } from '../../../data/download.js';
import type { AuditEntry } from '../../../data/models.js';
import { useMay } from '../../../data/rights.js';
import { Button } from '../../../parts/button.js';
import { Field, Select } from '../../../parts/field.js';
import { Page } from '../../../parts/page.js';
import { Older } from '../../../parts/older.js';
import { Empty, ErrorBox, Loaded, Notice } from '../../../parts/states.js';
import { Table } from '../../../parts/table.js';
import { At } from '../../../parts/time.js';
import { TeamTabs } from '../tabs.js';
import styles from './page.module.css';
import { filterOf, type AuditSearch } from './search.js';
import { ACTIONS, ACTORS } from './words.js';

const route = getRouteApi('/team/audit');
const PAGE = 50;

export default function AuditPage() {
  if (useMay('administer')) return <AuditLog />;
  return (
    <Page title="Team" lead="Who may do what, and who has done what?">
      <Notice>
        <p>Only admins of the organization see what was done in it.</p>
      </Notice>
    </Page>
  );
}

function AuditLog() {
  const search = route.useSearch();
  const query = useInfiniteQuery({
    queryKey: ['audit-log', search],
    queryFn: ({ signal, pageParam }) => {
      const cursor = pageParam === undefined ? {} : { cursor: pageParam };
      return api.get('/v1/audit-log', { params: { query: { limit: PAGE, ...filterOf(search), ...cursor } }, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
  });
  return (
    <Page title="Team" lead="Who may do what, and who has done what?" actions={<Csv search={search} />}>
      <TeamTabs shown="audit log" />
      <Filters search={search} />
      <Loaded query={query} rows={8}>
        {({ pages }) => {
          const entries = pages.flatMap(({ items }) => items);
          return (
            <>
              {entries.length === 0 && !query.hasNextPage ? (
                <Empty title="Nothing was done">Here is everything that members, API keys and operators do.</Empty>
              ) : (
                <Entries entries={entries} />
              )}
              <Older query={query} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function Filters({ search }: { search: AuditSearch }) {
  const navigate = route.useNavigate();
  const go = (changed: { [Name in keyof AuditSearch]: AuditSearch[Name] | undefined }) =>
    void navigate({ search: { ...search, ...changed } as AuditSearch });
  const actors = Object.entries(ACTORS).map(([value, label]) => ({ value: value as keyof typeof ACTORS, label }));
  const actions = Object.keys(ACTIONS).map((value) => ({ value: value as keyof typeof ACTIONS, label: value }));
  return (
    <div className={styles.filters}>
      <Field label="Done by">
        {(tied) => (
          <Select
            {...tied}
            choices={[{ value: '', label: 'anybody' }, ...actors]}
            value={search.by ?? ''}
            onChoose={(by) => go({ by: by === '' ? undefined : by })}
          />
        )}
      </Field>
      <Field label="Action">
        {(tied) => (
          <Select
            {...tied}
            choices={[{ value: '', label: 'any' }, ...actions]}
            value={search.action ?? ''}
            onChoose={(action) => go({ action: action === '' ? undefined : action })}
          />
        )}
      </Field>
    </div>
  );
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <Table
      label="What was done"
      rows={entries}
      keyOf={({ id }) => String(id)}
      columns={[
        { title: 'When', cell: ({ at }) => <At at={at} /> },
        { title: 'Action', cell: ({ action }) => action },
        { title: 'By', cell: (entry) => <Actor entry={entry} /> },
        { title: 'To', cell: ({ object }) => <code className={styles.object}>{object}</code> },
        { title: 'From', cell: ({ address }) => address ?? '' },
        { title: 'Reason', cell: ({ reason }) => <span className={styles.reason}>{reason}</span> },
      ]}
    />
  );
}

function Actor({ entry: { actor_kind, actor_name } }: { entry: AuditEntry }) {
  return (
    <span className={styles.actor}>
      {actor_kind === 'api_key' && 'API key '}
      {actor_name}
    </span>
  );
}

/** Saves what the filters choose, all of it. */
function Csv({ search }: { search: AuditSearch }) {
  const save = useAct(
    // What is read of it is no JSON, of which the types do not know.
    async () => {
      const content: unknown = await api.get('/v1/audit-log.csv', {
        params: { query: filterOf(search) },
        parseAs: 'blob',
      });
      return content as Blob;
    },
    [],
    (content) => saveFile('audit-log.csv', content),
  );
  return (
    <>
      <Button isBusy={save.isPending} onClick={() => save.mutate()}>
        Save as CSV
      </Button>
      {save.error && <ErrorBox error={save.error} />}
    </>
  );
}
