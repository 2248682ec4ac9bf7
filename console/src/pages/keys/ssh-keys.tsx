import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { isPrivateKey, PRIVATE_KEY_GIVEN } from '../../../../client/text/ssh-keys.js';
import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import type { SshKey } from '../../data/api/models.js';
import { sshKeys } from '../../data/api/queries.js';
import { Button, LinkButton } from '../../parts/controls/button.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { Field, Input, TextArea } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { Section } from '../../parts/layout/page.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { Table, type Column } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import styles from './page.module.css';

const route = getRouteApi('/keys');
const OLD = [['ssh-keys']];

/** The keys with which the user reaches instances. */
export function SshKeys() {
  const query = useQuery(sshKeys);
  const { add } = route.useSearch();
  const navigate = route.useNavigate();
  const close = () => void navigate({ search: {}, replace: true });
  const addButton = (
    <LinkButton kind="main" to="/keys" search={{ add: 'ssh' }} aria-haspopup="dialog">
      Add an SSH key
    </LinkButton>
  );
  return (
    <Section title="Your SSH keys" actions={query.data?.length !== 0 && addButton}>
      <p className={styles.prose}>They belong to you, in every organization. A deploy asks which of them may log in.</p>
      <Loaded query={query}>
        {(keys) =>
          keys.length === 0 ? (
            <Empty title="You have no SSH key" action={addButton}>
              Without one, nobody can log in to an instance by SSH.
            </Empty>
          ) : (
            <Table label="SSH keys" columns={COLUMNS} rows={keys} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      <Dialog title="Add an SSH key" isOpen={add === 'ssh'} onClose={close}>
        <AddForm close={close} />
      </Dialog>
    </Section>
  );
}

const COLUMNS: readonly Column<SshKey>[] = [
  { title: 'Name', cell: ({ name }) => <span className={styles.name}>{name}</span> },
  { title: 'Fingerprint', cell: ({ fingerprint }) => <code>{fingerprint}</code> },
  { title: 'Added', cell: ({ created_at }) => <Ago at={created_at} /> },
  {
    title: 'Acts',
    cell: ({ id, name }) => (
      <ConfirmButton
        label="Remove"
        about={name}
        title={`Remove the SSH key ${name}`}
        act={() => api.delete('/v1/ssh-keys/{id}', { params: { path: { id } } })}
        old={OLD}
      >
        <p>New instances cannot be given it any more. Instances that have it keep it.</p>
      </ConfirmButton>
    ),
    isNumber: true,
  },
];

function AddForm({ close }: { close: () => void }) {
  const [name, setName] = useState('');
  const [publicKey, setPublicKey] = useState('');
  const [isTried, setTried] = useState(false);
  const text = publicKey.trim();
  // The comment of the key is its usual name.
  const shownName = name.trim() || (text.split(/\s+/)[2] ?? '').slice(0, 64);
  const fault = isPrivateKey(text)
    ? `This is a private key. ${PRIVATE_KEY_GIVEN} Paste the line of the file that ends in .pub.`
    : text === ''
      ? 'Paste the line of the file that ends in .pub.'
      : undefined;
  const adding = useAct(
    () => api.post('/v1/ssh-keys', { body: { name: shownName || 'key', public_key: text } }),
    OLD,
    close,
  );
  const submit = () => {
    setTried(true);
    if (fault === undefined) adding.mutate();
  };
  return (
    <Form className={styles.form} onSubmit={submit} error={adding.error} noValidate>
      <Field
        name="public_key"
        label="Public key"
        hint={
          <>
            For example what <code>cat ~/.ssh/id_ed25519.pub</code> prints.
          </>
        }
        error={isTried || isPrivateKey(text) ? fault : undefined}
      >
        {(tied) => (
          <TextArea
            {...tied}
            rows={4}
            maxLength={16_384}
            spellCheck={false}
            value={publicKey}
            onChange={({ target }) => setPublicKey(target.value)}
          />
        )}
      </Field>
      <Field name="name" label="Name" hint="Empty: the comment at the end of the key.">
        {(tied) => <Input {...tied} maxLength={64} value={name} onChange={({ target }) => setName(target.value)} />}
      </Field>
      <FormError />
      <DialogActions>
        <Button onClick={close}>Cancel</Button>
        <Button kind="main" type="submit" isBusy={adding.isPending}>
          Add the key
        </Button>
      </DialogActions>
    </Form>
  );
}
