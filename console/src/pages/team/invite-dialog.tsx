import { useState } from 'react';
import type { paths } from '../../../../client/api/index.js';
import { useAct } from '../../data/act.js';
import { api } from '../../data/api.js';
import { useDraft } from '../../data/draft.js';
import type { Role } from '../../data/models.js';
import { Button } from '../../parts/button.js';
import { Dialog, DialogActions } from '../../parts/dialog.js';
import { Field, Input } from '../../parts/field.js';
import { Form, FormError } from '../../parts/form.js';
import { SecretDialog } from '../../parts/secret-dialog.js';
import { At } from '../../parts/time.js';
import { RoleField } from './change-role.js';
import styles from './page.module.css';

type Created = paths['/v1/orgs/current/invites']['post']['responses'][201]['content']['application/json'];

/** Asks whom to invite, then shows the link, which is shown only once. */
export function InviteDialog({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<Created>();
  if (created) return <InviteLink created={created} onClose={onClose} />;
  return (
    <Dialog title="Invite somebody" isOpen onClose={onClose}>
      <InviteForm onCreated={setCreated} close={onClose} />
    </Dialog>
  );
}

function InviteLink({ created: { invite, token, mailed }, onClose }: { created: Created; onClose: () => void }) {
  return (
    <SecretDialog
      title={`${invite.email} is invited`}
      label="Link of the invitation"
      secret={linkOf(token)}
      onClose={onClose}
    >
      <p>
        {mailed === true
          ? 'A mail with this link is on its way. You can also give it to them yourself.'
          : 'No mail is sent: give them this link yourself.'}{' '}
        It is shown only now, and works until <At at={invite.expires_at} /> for this address.
      </p>
    </SecretDialog>
  );
}

const NOBODY: { email: string; role: Role } = { email: '', role: 'member' };

function InviteForm({ onCreated, close }: { onCreated: (created: Created) => void; close: () => void }) {
  const [{ email, role }, setDraft] = useDraft('invite', NOBODY);
  const create = useAct(
    () => api.post('/v1/orgs/current/invites', { body: { email: email.trim(), role } }),
    [['invites'], ['audit-log']],
    onCreated,
  );
  return (
    <Form className={styles.form} onSubmit={() => create.mutate()} error={create.error}>
      <Field name="email" label="E-mail address" hint="They need an account with this address.">
        {(tied) => (
          <Input
            {...tied}
            type="email"
            required
            value={email}
            onChange={({ target }) => setDraft({ email: target.value, role })}
          />
        )}
      </Field>
      <RoleField value={role} onChoose={(chosen) => setDraft({ email, role: chosen })} />
      <FormError />
      <DialogActions>
        <Button onClick={close}>Cancel</Button>
        <Button kind="main" type="submit" isBusy={create.isPending}>
          Invite
        </Button>
      </DialogActions>
    </Form>
  );
}

function linkOf(token: string): string {
  return `${location.origin}/accept-invite?${new URLSearchParams({ token }).toString()}`;
}
