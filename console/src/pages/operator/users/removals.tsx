import { Link } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';
import { Section } from '../../../parts/layout/page.js';
import { Table } from '../../../parts/layout/table.js';
import { Ago } from '../../../parts/values/time.js';
import type { FactorRemoval } from '../models.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { OPERATED } from '../queries.js';

/** The removals of second factors that have not taken effect; nothing where there is none. */
export function Removals() {
  return (
    <Paged
      name={['second-factor-removals']}
      read={(query, signal) => api.get('/v1/operator/second-factor-removals', { params: { query }, signal })}
      empty={null}
    >
      {(removals) => (
        <Section title="Second factors that will be removed">
          <Table
            label="Second factors that will be removed"
            rows={removals}
            keyOf={({ user_id }) => user_id}
            columns={[
              {
                title: 'User',
                cell: ({ email }) => (
                  <Link className={styles.name} to="/operator/users" search={{ email }}>
                    {email}
                  </Link>
                ),
              },
              { title: 'Removed', cell: ({ effective_at }) => <Ago at={effective_at} /> },
              { title: 'Reason', cell: ({ reason }) => <span className={styles.text}>{reason}</span> },
              { title: 'Acts', cell: (removal) => <CancelRemoval removal={removal} /> },
            ]}
          />
        </Section>
      )}
    </Paged>
  );
}

function CancelRemoval({ removal: { user_id: id, email } }: { removal: FactorRemoval }) {
  return (
    <ConfirmButton
      label="Cancel the removal"
      about={email}
      title={`Cancel the removal: ${email} keeps the second factors`}
      kind="main"
      act={() => api.delete('/v1/operator/users/{id}/second-factor-removal', { params: { path: { id } } })}
      old={OPERATED}
    >
      <p>Without them, this user cannot sign in.</p>
    </ConfirmButton>
  );
}
