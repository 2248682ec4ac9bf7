import type { paths } from '../../../../client/api/index.js';
import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import { useDraft } from '../../data/forms/draft.js';
import type { Role } from '../../data/api/models.js';
import { Button } from '../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { Field, Input } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { SecretDialog } from '../../parts/controls/secret-dialog.js';
import { At } from '../../parts/values/time.js';
import { RoleField } from './change-role.js';
import styles from './page.module.css';

/** An invitation that was made, with the token of its link. */
export type Created = paths['/v1/orgs/current/invites']['post']['responses'][201]['content']['application/json'];

interface DialogProps {
  /** Called as soon as there is an invitation, also if the dialog is closed by then: its link must be shown. */
  onCreated: (created: Created) => void;
  onClose: () => void;
}

/** Asks whom to invite. */
export function InviteDialog({ onCreated, onClose }: DialogProps) {
  return (
    <Dialog title="Invite somebody" isOpen onClose={onClose}>
      <InviteForm onCreated={onCreated} close={onClose} />
    </Dialog>
  );
}

interface LinkProps {
  created: Created;
  onClose: () => void;
}

/** Shows the link of an invitation, this once. */
export function InviteLink({ created: { invite, token, mailed }, onClose }: LinkProps) {
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

function InviteForm({ onCreated, close }: { onCreated: DialogProps['onCreated']; close: () => void }) {
  const [{ email, role }, setDraft] = useDraft('invite', NOBODY);
  const create = useAct(
    async () => onCreated(await api.post('/v1/orgs/current/invites', { body: { email: email.trim(), role } })),
    [['invites'], ['audit-log']],
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
