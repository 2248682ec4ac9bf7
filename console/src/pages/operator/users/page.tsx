import { getRouteApi } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { Page } from '../../../parts/layout/page.js';
import { Table } from '../../../parts/layout/table.js';
import { At } from '../../../parts/values/time.js';
import { FindForm } from '../find-form.js';
import type { OperatedUser } from '../models.js';
import { UserLink } from '../links.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { Removals } from './removals.js';
import { UserTabs } from './tabs.js';
import { OneUser } from './user.js';

const route = getRouteApi('/operator/users');

export default function UsersPage() {
  const { email } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page title="Users" lead="Who signs in, and who cannot?">
      <UserTabs shown="users" />
      <FindForm
        key={email ?? ''}
        label="E-mail address"
        hint="The whole address, in upper or lower case."
        value={email ?? ''}
        onFind={(text) => void navigate({ search: text === '' ? {} : { email: text } })}
      />
      {email === undefined ? <Everybody /> : <OneUser email={email} />}
    </Page>
  );
}

function Everybody() {
  return (
    <>
      <Removals />
      <Paged
        name={['users']}
        read={(query, signal) => api.get('/v1/operator/users', { params: { query }, signal })}
        empty={<p className={styles.weak}>There is no user.</p>}
      >
        {(users) => <Users users={users} />}
      </Paged>
    </>
  );
}

function Users({ users }: { users: readonly OperatedUser[] }) {
  return (
    <Table
      label="Users"
      rows={users}
      keyOf={({ id }) => id}
      columns={[
        { title: 'User', cell: ({ name, email }) => <UserLink name={name} email={email} /> },
        { title: 'Operator', cell: ({ is_operator }) => (is_operator ? 'operator' : '') },
        { title: 'Created', cell: ({ created_at }) => <At at={created_at} /> },
      ]}
    />
  );
}
