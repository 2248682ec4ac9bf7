import { getRouteApi } from '@tanstack/react-router';
import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import { useDraft } from '../../data/forms/draft.js';
import type { Member, Role } from '../../data/api/models.js';
import { isDemotion, ROLES } from '../../data/api/role.js';
import { Button, LinkButton } from '../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { Field, Select } from '../../parts/forms/field.js';
import { ErrorBox, Notice } from '../../parts/controls/states.js';

interface ChangeProps {
  member: Member;
  isMe: boolean;
}

const route = getRouteApi('/team');

/** A button that gives a member another role, and says what that takes away. */
export function ChangeRole({ member, isMe }: ChangeProps) {
  const { id, email } = member;
  const { role: changed } = route.useSearch();
  const navigate = route.useNavigate();
  const close = () => void navigate({ search: {}, replace: true });
  return (
    <>
      <LinkButton to="/team" search={{ role: id }} aria-haspopup="dialog" aria-label={`Change role: ${email}`}>
        Change role
      </LinkButton>
      <Dialog title={`Change the role of ${email}`} isOpen={changed === id} onClose={close}>
        <ChangeForm member={member} isMe={isMe} close={close} />
      </Dialog>
    </>
  );
}

function ChangeForm({ member: { id, role }, isMe, close }: ChangeProps & { close: () => void }) {
  const [chosen, choose] = useDraft<Role>(`role.${id}`, role);
  const change = useAct(
    () => api.patch('/v1/orgs/current/members/{id}', { params: { path: { id } }, body: { role: chosen } }),
    [['members'], ['me'], ['audit-log']],
    close,
  );
  return (
    <>
      <RoleField value={chosen} onChoose={choose} />
      {isDemotion(role, chosen) && (
        <Notice kind="warning">
          <p>
            This revokes their personal API keys. Programs that use these stop working, and nobody can bring them back.
          </p>
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
          disabled={chosen === role && !change.isPending}
          onClick={() => change.mutate()}
        >
          Change role
        </Button>
      </DialogActions>
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
