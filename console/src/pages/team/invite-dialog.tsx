import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { api } from '../../data/api.js';
import type { Role } from '../../data/models.js';
import { Button } from '../../parts/button.js';
import { CopyLine } from '../../parts/copy.js';
import { Dialog, DialogActions } from '../../parts/dialog.js';
import { Field, Input } from '../../parts/field.js';
import { ErrorBox } from '../../parts/states.js';
import { At } from '../../parts/time.js';
import { RoleField } from './change-role.js';
import styles from './page.module.css';

/** Asks whom to invite, then shows the link, which is shown only once. */
export function InviteDialog({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('member');
  const create = useAct(
    () => api.post('/v1/orgs/current/invites', { body: { email: email.trim(), role } }),
    [['invites'], ['audit-log']],
  );
  if (create.data)
    return (
      <Dialog title={`${create.data.invite.email} is invited`} isOpen onClose={onClose}>
        <p>
          {create.data.mailed === true
            ? 'A mail with this link is on its way. You can also give it to them yourself.'
            : 'No mail is sent: give them this link yourself.'}{' '}
          It is shown only now, and works until <At at={create.data.invite.expires_at} /> for this address.
        </p>
        <CopyLine label="Link of the invitation" text={linkOf(create.data.token)} />
        <DialogActions>
          <Button kind="main" onClick={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    );
  return (
    <Dialog title="Invite somebody" isOpen onClose={onClose}>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <Field label="E-mail address" hint="They need an account with this address.">
          {(tied) => (
            <Input {...tied} type="email" required value={email} onChange={({ target }) => setEmail(target.value)} />
          )}
        </Field>
        <RoleField value={role} onChoose={setRole} />
        {create.error && <ErrorBox error={create.error} />}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" isBusy={create.isPending}>
            Invite
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

function linkOf(token: string): string {
  return `${location.origin}/accept-invite?${new URLSearchParams({ token }).toString()}`;
}
