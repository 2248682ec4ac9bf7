import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../data/api/api.js';
import { useAct } from '../../data/forms/act.js';
import { noteInstance } from '../../data/instances/instance-acts.js';
import { nameOf } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { sshKeys } from '../../data/api/queries.js';
import { Button } from '../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { Field, Select } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { Loaded } from '../../parts/controls/states.js';
import { say } from '../../parts/controls/toast.js';
import styles from './page.module.css';

/** Replaces the access token, the SSH key or both, for example after a member has left who knows them. */
export function ReplaceAccess({ instance }: { instance: Instance }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button onClick={() => setOpen(true)} aria-haspopup="dialog">
        Replace the access
      </Button>
      <Dialog title={`Replace the access of ${nameOf(instance)}`} isOpen={isOpen} onClose={close}>
        <ReplaceForm instance={instance} onClose={close} />
      </Dialog>
    </>
  );
}

const KEEP = 'keep';

function ReplaceForm({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const queries = useQueryClient();
  const keys = useQuery(sshKeys);
  const [chosen, setChosen] = useState(KEEP);
  const replace = useAct(
    (ssh_key_id: string | null) =>
      api.post('/v1/instances/{id}/access', { params: { path: { id: instance.id } }, body: { ssh_key_id } }),
    [['instance', instance.id, 'events']],
    (changed: Instance) => {
      noteInstance(queries, changed);
      say('The machine is told to replace the access');
      onClose();
    },
  );
  return (
    <Form
      className={styles.connect}
      onSubmit={() => replace.mutate(chosen === KEEP ? null : chosen)}
      error={replace.error}
    >
      <p>
        {instance.access_token === null
          ? 'Whoever has the old SSH key cannot log in any more. Connections that are open stay.'
          : 'The access token is replaced: links with the old one end. Whoever has an SSH key that is replaced cannot log in any more; connections that are open stay.'}
      </p>
      <Loaded query={keys} rows={1}>
        {(items) => (
          <Field name="ssh_key_id" label="SSH key from now on">
            {(tied) => (
              <Select
                {...tied}
                value={chosen}
                choices={[
                  { value: KEEP, label: 'the present one' },
                  ...items.map(({ id, name }) => ({ value: id, label: name })),
                ]}
                onChoose={setChosen}
              />
            )}
          </Field>
        )}
      </Loaded>
      <FormError />
      <DialogActions>
        <Button onClick={onClose}>Keep it as it is</Button>
        <Button type="submit" kind="main" isBusy={replace.isPending}>
          Replace
        </Button>
      </DialogActions>
    </Form>
  );
}

const STATES: Readonly<Record<NonNullable<Instance['access_replacement']>, string>> = {
  pending: 'The access is being replaced: the machine has not confirmed it.',
  applied: 'The access was replaced.',
  token_only: 'The access token was replaced. The container keeps its old SSH key.',
  refused: 'The machine has not replaced the access: the old one counts.',
};

/** How the last replacement of the access went. */
export function Replacement({ state }: { state: Instance['access_replacement'] }) {
  return state === null ? null : <p className={styles.muted}>{STATES[state]}</p>;
}
