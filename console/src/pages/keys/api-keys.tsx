import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../data/api/api.js';
import { me } from '../../data/api/queries.js';
import { may, useMay } from '../../data/api/rights.js';
import { Button, LinkButton } from '../../parts/controls/button.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { Dialog, LoadedInDialog } from '../../parts/controls/dialog.js';
import { Section } from '../../parts/layout/page.js';
import { SecretDialog } from '../../parts/controls/secret-dialog.js';
import { CapMeters, CapsForm, capWords } from '../../parts/forms/spend-caps.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { Table, type Column } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import { ApiKeyForm } from './api-key-form.js';
import styles from './page.module.css';
import { apiKeys, keyCaps, type ApiKey, type MadeKey } from './queries.js';

const route = getRouteApi('/keys');

/** The keys with which programs act for the organization; nothing for those who may not see them. */
export function ApiKeys() {
  return useMay('read') ? <KeysOfOrganization /> : null;
}

function KeysOfOrganization() {
  const query = useQuery(apiKeys);
  const user = useQuery(me).data;
  const { add, caps } = route.useSearch();
  const navigate = route.useNavigate();
  const close = () => void navigate({ search: {}, replace: true });
  const [made, setMade] = useState<MadeKey>();
  const forget = () => {
    setMade(undefined);
    close();
  };
  const createButton = may(user, 'change') ? (
    <LinkButton kind="main" to="/keys" search={{ add: 'api' }} aria-haspopup="dialog">
      Create an API key
    </LinkButton>
  ) : undefined;
  return (
    <Section title="API keys of the organization" actions={query.data?.length !== 0 && createButton}>
      <p className={styles.prose}>A program that has one acts as a member, less what the key is not allowed.</p>
      <Loaded query={query}>
        {(keys) =>
          keys.length === 0 ? (
            <Empty title="There are no API keys" action={createButton}>
              The command line, Terraform and scripts use one each.
            </Empty>
          ) : (
            <Table label="API keys" columns={columnsFor(user)} rows={keys} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      <Dialog title="Create an API key" isOpen={add === 'api' && !made && may(user, 'change')} onClose={close}>
        <ApiKeyForm mayMakeTeamKeys={may(user, 'administer')} close={close} onMade={setMade} />
      </Dialog>
      <Dialog title="Caps of the API key" isOpen={caps !== undefined} onClose={close}>
        {caps !== undefined && <KeyCaps id={caps} close={close} />}
      </Dialog>
      {made && <MadeSecret made={made} onClose={forget} />}
    </Section>
  );
}

function MadeSecret({ made: { key, secret }, onClose }: { made: MadeKey; onClose: () => void }) {
  return (
    <SecretDialog
      title="Copy the secret of the API key now"
      label={`The secret of ${key.name}`}
      secret={secret}
      onClose={onClose}
    >
      <p>
        A program that has this secret acts as <strong className={styles.name}>{key.name}</strong>. Nobody can read it
        again, neither you nor the operator.
      </p>
    </SecretDialog>
  );
}

type User = Parameters<typeof may>[0];

function columnsFor(user: User): readonly Column<ApiKey>[] {
  return [
    {
      title: 'Name',
      cell: ({ name, prefix }) => (
        <span className={styles.name}>
          {name} <code className={styles.weak}>{prefix}…</code>
        </span>
      ),
    },
    { title: 'May', cell: (key) => limitsOf(key) },
    { title: 'May spend', cell: ({ spend_caps }) => capWords(spend_caps) },
    {
      title: 'Whose',
      cell: ({ kind, creator_email, creator_is_member }) =>
        `${kind === 'team' ? 'of the team, by' : 'of'} ${creator_email}${creator_is_member ? '' : ', who has left'}`,
    },
    {
      title: 'Used',
      cell: ({ last_used_at }) => (last_used_at === null ? 'never' : <Ago at={last_used_at} />),
    },
    {
      title: 'Ends',
      cell: ({ expires_at }) => (expires_at === null ? 'never' : <Ago at={expires_at} />),
    },
    { title: 'Acts', cell: (key) => <Acts apiKey={key} user={user} />, isNumber: true },
  ];
}

function limitsOf({ read_only, allowed_addresses }: ApiKey): string {
  const from = allowed_addresses === null ? 'from everywhere' : `from ${allowed_addresses.join(', ')}`;
  return `${read_only ? 'read' : 'read and change'}, ${from}`;
}

function Acts({ apiKey: { id, name, creator_id }, user }: { apiKey: ApiKey; user: User }) {
  const mayRevoke = may(user, 'administer') || (may(user, 'change') && creator_id === user?.user.id);
  return (
    <span className={styles.acts}>
      <LinkButton to="/keys" search={{ caps: id }} aria-haspopup="dialog" aria-label={`Caps: ${name}`}>
        Caps
      </LinkButton>
      {mayRevoke && (
        <ConfirmButton
          label="Revoke"
          about={name}
          title={`Revoke the API key ${name}`}
          act={() => api.delete('/v1/api-keys/{id}', { params: { path: { id } } })}
          old={[['api-keys']]}
        >
          <p>
            What uses it is refused from its next request on, and nobody can bring the key back. Instances that it has
            deployed go on.
          </p>
        </ConfirmButton>
      )}
    </span>
  );
}

function KeyCaps({ id, close }: { id: string; close: () => void }) {
  const query = useQuery(keyCaps(id));
  const mayPay = may(useQuery(me).data, 'change_money');
  return (
    <LoadedInDialog query={query} onClose={close}>
      {(caps) => (
        <div className={styles.form}>
          <CapMeters caps={caps} />
          {mayPay ? (
            <CapsForm
              caps={caps}
              read={() => api.get('/v1/api-keys/{id}/spend-caps', { params: { path: { id } } })}
              save={(body) => api.put('/v1/api-keys/{id}/spend-caps', { params: { path: { id } }, body })}
              onDone={close}
            />
          ) : (
            <Button onClick={close}>Close</Button>
          )}
        </div>
      )}
    </LoadedInDialog>
  );
}
