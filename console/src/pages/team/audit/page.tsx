import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import { changedSearch } from '../../../data/forms/changed-search.js';
import { saveFile } from '../../../data/api/download.js';
import type { AuditEntry } from '../../../data/api/models.js';
import { useMay } from '../../../data/api/rights.js';
import { Button, LinkButton } from '../../../parts/controls/button.js';
import { DayInput } from '../../../parts/forms/address-input.js';
import { Field, Select } from '../../../parts/forms/field.js';
import { InstanceLink, useNamesPending } from '../../../parts/instances/instance-link.js';
import { Page } from '../../../parts/layout/page.js';
import { Older } from '../../../parts/controls/older.js';
import { Empty, ErrorBox, Loaded, Notice, Skeleton } from '../../../parts/controls/states.js';
import { Table } from '../../../parts/layout/table.js';
import { At } from '../../../parts/values/time.js';
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
  const isNaming = useNamesPending();
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
          if (isNaming) return <Skeleton rows={8} />;
          const entries = pages.flatMap(({ items }) => items);
          return (
            <>
              {entries.length === 0 && !query.hasNextPage ? (
                <NothingFound isFiltered={Object.keys(search).length > 0} />
              ) : (
                <Entries entries={entries} search={search} />
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
  const go = (changed: { [Name in keyof AuditSearch]?: AuditSearch[Name] | undefined }, replace = false) =>
    void navigate({ search: (before) => changedSearch(before, changed), replace });
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
      <Field label="From (UTC)">
        {(tied) => <DayInput {...tied} value={search.from} onWrite={(from, replace) => go({ from }, replace)} />}
      </Field>
      <Field label="To (UTC)">
        {(tied) => <DayInput {...tied} value={search.to} onWrite={(to, replace) => go({ to }, replace)} />}
      </Field>
      {search.who !== undefined && (
        <LinkButton to="/team/audit" search={changedSearch(search, { who: undefined })}>
          Show what everybody did
        </LinkButton>
      )}
    </div>
  );
}

function NothingFound({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered)
    return <Empty title="Nothing was done">Here is everything that members, API keys and operators do.</Empty>;
  return (
    <p role="status">
      Nothing like this was done. <Link to="/team/audit">Show everything</Link>
    </p>
  );
}

/** The entries. Who did it leads to everything else by them. */
function Entries({ entries, search }: { entries: readonly AuditEntry[]; search: AuditSearch }) {
  return (
    <Table
      label="What was done"
      rows={entries}
      keyOf={({ id }) => String(id)}
      columns={[
        { title: 'When', cell: ({ at }) => <At at={at} /> },
        { title: 'Action', cell: ({ action }) => action },
        { title: 'By', cell: (entry) => <Actor entry={entry} search={search} /> },
        { title: 'To', cell: ({ object }) => <Subject path={object} /> },
        { title: 'From', cell: ({ address }) => address ?? '' },
        { title: 'Reason', cell: ({ reason }) => <span className={styles.reason}>{reason}</span> },
      ]}
    />
  );
}

function Actor({ entry: { actor_kind, actor_id, actor_name }, search }: { entry: AuditEntry; search: AuditSearch }) {
  return (
    <span className={styles.actor}>
      {actor_kind === 'api_key' && 'API key '}
      {actor_id === null ? (
        actor_name
      ) : (
        <Link to="/team/audit" search={{ ...search, who: actor_id }}>
          {actor_name}
        </Link>
      )}
    </span>
  );
}

/** What it was done to: an instance by its name, a template or an endpoint of webhooks by a link, anything else by its path. */
function Subject({ path }: { path: string }) {
  const [kind, id = ''] = path.split('/');
  const words = <code className={styles.object}>{path}</code>;
  if (kind === 'instances')
    return (
      <span className={styles.reason}>
        instance <InstanceLink id={id} />
      </span>
    );
  if (kind === 'templates')
    return (
      <Link to="/templates/$id" params={{ id }}>
        {words}
      </Link>
    );
  if (kind === 'webhook-endpoints')
    return (
      <Link to="/webhooks/$id" params={{ id }}>
        {words}
      </Link>
    );
  return words;
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
