import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../../data/api.js';
import { Field, Input } from '../../../parts/field.js';
import { Money } from '../../../parts/money.js';
import { Page } from '../../../parts/page.js';
import { Empty } from '../../../parts/states.js';
import { Marked } from '../../../parts/status.js';
import { Table } from '../../../parts/table.js';
import { At } from '../../../parts/time.js';
import type { OperatedOrganization } from '../models.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { standing } from './standing.js';

export default function OrganizationsPage() {
  const [wanted, setWanted] = useState('');
  return (
    <Page title="Organizations" lead="Who rents, and how do they stand?">
      <div className={styles.narrow}>
        <Field label="Name or id">
          {(tied) => <Input {...tied} type="search" value={wanted} onChange={(e) => setWanted(e.target.value)} />}
        </Field>
      </div>
      <Paged
        name={['organizations']}
        read={(query, signal) => api.get('/v1/operator/organizations', { params: { query }, signal })}
        empty={<Empty title="There is no organization yet">The first renter who signs up makes one.</Empty>}
      >
        {(organizations) => <Found organizations={organizations} wanted={wanted.trim().toLowerCase()} />}
      </Paged>
    </Page>
  );
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The API finds an organization by its id only: names are looked for in what was read. */
function Found({ organizations, wanted }: { organizations: readonly OperatedOrganization[]; wanted: string }) {
  const found = organizations.filter(({ id, name }) => id === wanted || name.toLowerCase().includes(wanted));
  if (found.length > 0) return <Organizations organizations={found} />;
  if (ID.test(wanted))
    return (
      <p>
        <Link to="/operator/organizations/$id" params={{ id: wanted }}>
          Look at the organization with this id
        </Link>
      </p>
    );
  return <p role="status">None of the {organizations.length} that are shown so far has this name.</p>;
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
