import { useQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import type { LinkedAccount } from '../../data/api/models.js';
import { buttonClass } from '../../parts/controls/button.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import styles from './page.module.css';
import { linkedAccounts } from './queries.js';

/** The accounts at companies with which the user signs in. */
export function Companies() {
  const query = useQuery(linkedAccounts);
  return (
    <Section
      title="Accounts at companies"
      actions={
        <a className={buttonClass()} href="/account/companies">
          Link an account
        </a>
      }
    >
      <Loaded query={query} rows={1}>
        {(items) =>
          items.length === 0 ? (
            <p className={styles.weak}>None is linked. With one, you sign in where your company does.</p>
          ) : (
            <Table
              label="Accounts at companies"
              rows={items}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Company', cell: nameOf },
                { title: 'As', cell: ({ email }) => email },
                { title: 'Linked', cell: ({ created_at }) => <Ago at={created_at} /> },
                {
                  title: 'Last used',
                  cell: ({ last_used_at }) => (last_used_at === null ? 'never' : <Ago at={last_used_at} />),
                },
                { title: 'Acts', cell: (account) => <Unlink account={account} />, isNumber: true },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

function nameOf({ issuer_name, issuer }: LinkedAccount): string {
  return issuer_name ?? issuer;
}

function Unlink({ account }: { account: LinkedAccount }) {
  const { id, email } = account;
  const about = `${email} at ${nameOf(account)}`;
  return (
    <ConfirmButton
      label="Unlink"
      about={about}
      title={`Unlink ${about}`}
      act={() => api.delete('/v1/me/identities/{id}', { params: { path: { id } } })}
      old={[linkedAccounts.queryKey]}
    >
      <p>You cannot sign in with it any more. Your sessions stay.</p>
    </ConfirmButton>
  );
}
