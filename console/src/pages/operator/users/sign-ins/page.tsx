import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { LinkButton } from '../../../../parts/controls/button.js';
import { Page } from '../../../../parts/layout/page.js';
import { Empty, Loaded } from '../../../../parts/controls/states.js';
import { Marked } from '../../../../parts/values/status.js';
import { Table } from '../../../../parts/layout/table.js';
import { At } from '../../../../parts/values/time.js';
import type { Issuer } from '../../models.js';
import styles from '../../operator.module.css';
import { UserTabs } from '../tabs.js';
import { signIns } from './queries.js';

export default function SignInsPage() {
  const query = useQuery(signIns);
  return (
    <Page
      title="Companies’ sign-ins"
      lead="Which companies let their people sign in with their accounts at work?"
      actions={<AddButton />}
    >
      <UserTabs shown="sign-ins" />
      <Loaded query={query} rows={4}>
        {(issuers) =>
          issuers.length === 0 ? (
            <Empty title="No company signs in" action={<AddButton />}>
              A company’s sign-in speaks OpenID Connect: Keycloak, Okta, Auth0, Google Workspace and others.
            </Empty>
          ) : (
            <SignIns issuers={issuers} />
          )
        }
      </Loaded>
    </Page>
  );
}

function AddButton() {
  return (
    <LinkButton kind="main" to="/operator/users/sign-ins/new">
      Add a company
    </LinkButton>
  );
}

function SignIns({ issuers }: { issuers: readonly Issuer[] }) {
  return (
    <Table
      label="Companies’ sign-ins"
      rows={issuers}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Company',
          cell: ({ id, name }) => (
            <Link className={styles.name} to="/operator/users/sign-ins/$id" params={{ id }}>
              {name}
            </Link>
          ),
        },
        { title: 'Issuer', cell: ({ issuer }) => <code className={styles.text}>{issuer}</code> },
        {
          title: 'Domains',
          cell: ({ domains }) => (
            <span className={styles.text}>
              {domains
                .map(({ domain, passwords_off }) => (passwords_off ? `${domain} (passwords off)` : domain))
                .join(', ')}
            </span>
          ),
        },
        {
          title: 'State',
          cell: ({ has_client_secret, listed }) =>
            has_client_secret ? (
              <Marked shape="dot">{listed ? 'works, named to everybody' : 'works'}</Marked>
            ) : (
              <Marked shape="square">its secret is lost</Marked>
            ),
        },
        { title: 'Added', cell: ({ created_at }) => <At at={created_at} /> },
      ]}
    />
  );
}
