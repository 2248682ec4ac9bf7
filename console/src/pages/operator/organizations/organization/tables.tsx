import { api } from '../../../../data/api/api.js';
import { Money } from '../../../../parts/values/money.js';
import { Table } from '../../../../parts/layout/table.js';
import { At } from '../../../../parts/values/time.js';
import { InstanceLink, UserLink } from '../../links.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';

/** The members of an organization. */
export function Members({ id }: { id: string }) {
  return (
    <Paged
      name={['organization', id, 'users']}
      read={(query, signal) =>
        api.get('/v1/operator/organizations/{id}/users', { params: { path: { id }, query }, signal })
      }
      empty={<p className={styles.weak}>It has no member.</p>}
    >
      {(members) => (
        <Table
          label="Members"
          rows={members}
          keyOf={(member) => member.id}
          columns={[
            { title: 'Member', cell: ({ name, email }) => <UserLink name={name} email={email} /> },
            { title: 'Role', cell: ({ role }) => role },
            { title: 'Joined', cell: ({ joined_at }) => <At at={joined_at} /> },
          ]}
        />
      )}
    </Paged>
  );
}

/** The transactions of an organization, newest first. */
export function Ledger({ id }: { id: string }) {
  return (
    <Paged
      name={['organization', id, 'transactions']}
      read={(query, signal) =>
        api.get('/v1/operator/organizations/{id}/transactions', { params: { path: { id }, query }, signal })
      }
      empty={<p className={styles.weak}>Nothing was paid, granted or charged.</p>}
    >
      {(transactions) => (
        <Table
          label="Ledger"
          rows={transactions}
          keyOf={(transaction) => transaction.id}
          columns={[
            {
              title: 'When',
              cell: ({ created_at }) => (
                <span className={styles.time}>
                  <At at={created_at} />
                </span>
              ),
            },
            { title: 'Kind', cell: ({ kind, meter }) => (meter === null ? kind : `${kind}, ${meter}`) },
            { title: 'Amount', cell: ({ amount_micro }) => <Money micro={amount_micro} />, isNumber: true },
            { title: 'Reason', cell: ({ reason }) => <span className={styles.text}>{reason}</span> },
            {
              title: 'Instance',
              cell: ({ instance_id }) => instance_id !== null && <InstanceLink id={instance_id} />,
            },
          ]}
        />
      )}
    </Paged>
  );
}
