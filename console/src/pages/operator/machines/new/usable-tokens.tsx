import { Link } from '@tanstack/react-router';
import { api } from '../../../../data/api/api.js';
import { ConfirmButton } from '../../../../parts/controls/confirm-button.js';
import { Section } from '../../../../parts/layout/page.js';
import { Table } from '../../../../parts/layout/table.js';
import { Ago, At } from '../../../../parts/values/time.js';
import type { ListedToken } from '../../models.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';
import { OPERATED } from '../../queries.js';

/** The tokens with which a host can still enroll; the tokens themselves are shown only when they are made. */
export function UsableTokens() {
  return (
    <Section title="Tokens with which a host can enroll">
      <Paged
        name={['enrollment-tokens']}
        read={(query, signal) =>
          api.get('/v1/operator/enrollment-tokens', { params: { query: { ...query, usable: true } }, signal })
        }
        empty={<p className={styles.weak}>There is none: no host can enroll.</p>}
      >
        {(tokens) => (
          <Table
            label="Tokens with which a host can enroll"
            rows={tokens}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Made', cell: ({ created_at }) => <Ago at={created_at} /> },
              { title: 'For', cell: ({ machine_id }) => <Whom machineId={machine_id} /> },
              { title: 'Used', cell: ({ uses, max_uses }) => `${uses} of ${max_uses}`, isNumber: true },
              { title: 'Expires', cell: ({ expires_at }) => <At at={expires_at} /> },
              { title: 'Act', cell: (token) => <Revoke token={token} /> },
            ]}
          />
        )}
      </Paged>
    </Section>
  );
}

function Whom({ machineId }: { machineId: string | null }) {
  if (machineId === null) return 'any host';
  return (
    <Link to="/operator/machines/$id" params={{ id: machineId }}>
      the machine {machineId.slice(0, 8)}
    </Link>
  );
}

function Revoke({ token: { id, machine_id } }: { token: ListedToken }) {
  return (
    <ConfirmButton
      label="Revoke"
      about={id}
      title={
        machine_id === null
          ? 'Revoke this token: no host can enroll with it'
          : 'Revoke this token: its machine cannot enroll with it'
      }
      act={() => api.delete('/v1/operator/enrollment-tokens/{id}', { params: { path: { id } } })}
      old={OPERATED}
    >
      <p>Hosts that have enrolled with it stay.</p>
    </ConfirmButton>
  );
}
