import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../data/api/api.js';
import { LinkButton } from '../../parts/controls/button.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import { InviteDialog, InviteLink, type Created } from './invite-dialog.js';
import styles from './page.module.css';
import { invites } from './queries.js';

const route = getRouteApi('/team');

/** The open invitations, for an admin. */
export function Invites() {
  const query = useQuery(invites);
  const { invite = false } = route.useSearch();
  const navigate = route.useNavigate();
  const close = () => void navigate({ search: {}, replace: true });
  const [created, setCreated] = useState<Created>();
  const forget = () => {
    setCreated(undefined);
    close();
  };
  return (
    <Section
      title="Invitations"
      actions={
        <LinkButton to="/team" search={{ invite: true }} aria-haspopup="dialog">
          Invite somebody
        </LinkButton>
      }
    >
      <Loaded query={query} rows={1}>
        {(items) =>
          items.length === 0 ? (
            <p className={styles.nothing}>Nobody is invited at present.</p>
          ) : (
            <Table
              label="Invitations"
              rows={items}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Invited', cell: ({ email }) => email },
                { title: 'Role', cell: ({ role }) => role },
                { title: 'Ends', cell: ({ expires_at }) => <Ago at={expires_at} /> },
                { title: 'Acts', cell: ({ id, email }) => <Withdraw id={id} email={email} />, isNumber: true },
              ]}
            />
          )
        }
      </Loaded>
      {invite && !created && <InviteDialog onCreated={setCreated} onClose={close} />}
      {created && <InviteLink created={created} onClose={forget} />}
    </Section>
  );
}

function Withdraw({ id, email }: { id: string; email: string }) {
  return (
    <ConfirmButton
      label="Withdraw"
      about={email}
      title={`Withdraw the invitation of ${email}`}
      act={() => api.delete('/v1/orgs/current/invites/{id}', { params: { path: { id } } })}
      old={[['invites'], ['audit-log']]}
    >
      <p>The link that they have does not work any more. You can invite them again.</p>
    </ConfirmButton>
  );
}
