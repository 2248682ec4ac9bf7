import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { api } from '../../data/api.js';
import type { Member, Role } from '../../data/models.js';
import { isDemotion, ROLES } from '../../data/role.js';
import { Button } from '../../parts/button.js';
import { Dialog, DialogActions } from '../../parts/dialog.js';
import { Field, Select } from '../../parts/field.js';
import { ErrorBox, Notice } from '../../parts/states.js';

/** A button that gives a member another role, and says what that takes away. */
export function ChangeRole({ member, isMe }: { member: Member; isMe: boolean }) {
  const { id, email, role } = member;
  const [chosen, choose] = useState<Role>();
  const close = () => choose(undefined);
  const change = useAct(
    (to: Role) => api.patch('/v1/orgs/current/members/{id}', { params: { path: { id } }, body: { role: to } }),
    [['members'], ['me'], ['audit-log']],
    close,
  );
  const open = () => {
    change.reset();
    choose(role);
  };
  return (
    <>
      <Button onClick={open} aria-label={`Change role: ${email}`}>
        Change role
      </Button>
      <Dialog title={`Change the role of ${email}`} isOpen={chosen !== undefined} onClose={close}>
        <RoleField value={chosen ?? role} onChoose={choose} />
        {chosen !== undefined && isDemotion(role, chosen) && (
          <Notice kind="warning">
            <p>This revokes their personal API keys. Programs that use these stop working, and nobody can bring them back.</p>
          </Notice>
        )}
        {isMe && role === 'admin' && chosen !== 'admin' && (
          <Notice kind="warning">
            <p>You can then not change it back yourself: only an admin can.</p>
          </Notice>
        )}
        {change.error && <ErrorBox error={change.error} />}
        <DialogActions>
          <Button onClick={close}>Keep it as it is</Button>
          <Button
            kind="main"
            isBusy={change.isPending}
            disabled={chosen === role}
            onClick={() => chosen && change.mutate(chosen)}
          >
            Change role
          </Button>
        </DialogActions>
      </Dialog>
    </>
  );
}

/** The choice of a role, with what it may do. */
export function RoleField({ value, onChoose }: { value: Role; onChoose: (role: Role) => void }) {
  const may = ROLES.find((role) => role.value === value)?.may ?? '';
  return (
    <Field label="Role" hint={`A ${value} ${may}.`}>
      {(tied) => <Select {...tied} choices={ROLES} value={value} onChoose={onChoose} />}
    </Field>
  );
}
