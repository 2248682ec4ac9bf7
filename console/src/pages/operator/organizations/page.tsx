import { getRouteApi, Link } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { Money } from '../../../parts/values/money.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { Table } from '../../../parts/layout/table.js';
import { At } from '../../../parts/values/time.js';
import { FindForm } from '../find-form.js';
import { isId } from '../ids.js';
import type { OperatedOrganization } from '../models.js';
import { NeedFilter } from '../need-filter.js';
import { ORGANIZATION_NEEDS } from '../listed-needs.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { filterOf, type OrganizationsSearch } from './search.js';
import { standing } from './standing.js';

const route = getRouteApi('/operator/organizations');

export default function OrganizationsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const look = (find: string) =>
    void (isId(find)
      ? navigate({ to: '/operator/organizations/$id', params: { id: find } })
      : navigate({ search: find === '' ? {} : { find } }));
  const filter = filterOf(search);
  return (
    <Page title="Organizations" lead="Who rents, and how do they stand?">
      <FindForm
        key={search.find ?? ''}
        label="Name, address of a member, or id"
        hint="The beginning of it. With an @ it is the address of a member."
        value={search.find ?? ''}
        onFind={look}
      />
      <NeedFilter
        words={ORGANIZATION_NEEDS}
        value={search.need}
        onChoose={(need) => void navigate({ search: need === undefined ? {} : { need } })}
      />
      <Paged
        name={['organizations', ...Object.entries(filter).flat()]}
        read={(query, signal) =>
          api.get('/v1/operator/organizations', { params: { query: { ...query, ...filter } }, signal })
        }
        empty={<NoneFound search={search} />}
      >
        {(organizations) => <Organizations organizations={organizations} />}
      </Paged>
    </Page>
  );
}

function NoneFound({ search: { find, by, need } }: { search: OrganizationsSearch }) {
  if (need !== undefined)
    return (
      <p role="status">
        No organization is like this: {ORGANIZATION_NEEDS[need]}.{' '}
        <Link to="/operator/organizations">Show all organizations</Link>
      </p>
    );
  if (find === undefined)
    return <Empty title="There is no organization yet">The first renter who signs up makes one.</Empty>;
  if (by === 'member' || find.includes('@'))
    return <p role="status">No organization has a member whose address begins with “{find}”.</p>;
  return (
    <p role="status">
      No name begins with “{find}”.{' '}
      <Link to="/operator/organizations" search={{ find, by: 'member' }}>
        Look for it in the addresses of members
      </Link>
    </p>
  );
}

function Organizations({ organizations }: { organizations: readonly OperatedOrganization[] }) {
  return (
    <Table
      label="Organizations"
      rows={organizations}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Organization',
          cell: ({ id, name }) => (
            <Link className={styles.name} to="/operator/organizations/$id" params={{ id }}>
              {name}
            </Link>
          ),
        },
        {
          title: 'State',
          cell: (organization) => {
            const { shape, words } = standing(organization);
            return <Marked shape={shape}>{words}</Marked>;
          },
        },
        { title: 'Balance', cell: ({ balance_micro }) => <Money micro={balance_micro} />, isNumber: true },
        { title: 'Created', cell: ({ created_at }) => <At at={created_at} /> },
      ]}
    />
  );
}
