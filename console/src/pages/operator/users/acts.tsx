import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { useDraft } from '../../../data/forms/draft.js';
import { me } from '../../../data/api/queries.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';
import { CheckBox } from '../../../parts/forms/field.js';
import { say } from '../../../parts/controls/toast.js';
import type { OperatedUser } from '../models.js';
import styles from '../operator.module.css';
import { OPERATED } from '../queries.js';
import { ReasonButton } from '../reason-button.js';
import { ResetLink } from './reset-link.js';

interface Props {
  user: OperatedUser;
}

const at = (id: string) => ({ params: { path: { id } } });
const MEMBERS_READ = 'The organizations of the user read it in their audit log.';
const OPERATORS_READ = 'Operators read it in their audit log.';

/** What an operator can do about somebody who signs in, or cannot. Some of it only another operator can do. */
export function UserActs({ user }: Props) {
  const isMe = useQuery(me).data?.user.id === user.id;
  return (
    <div className={styles.acts}>
      <EndSessions user={user} />
      <ResetLink user={user} hint={MEMBERS_READ} />
      {!isMe && <RemoveFactors user={user} />}
      {user.is_operator ? <Withdraw user={user} /> : <Grant user={user} />}
      {!isMe && <Remove user={user} />}
    </div>
  );
}

function EndSessions({ user: { id, email } }: Props) {
  const [{ revoke_api_keys }, setDraft] = useDraft(`end-sessions.${id}`, { revoke_api_keys: false });
  return (
    <ReasonButton
      label="End sessions"
      title={`End every session of ${email}${revoke_api_keys ? ', and revoke the API keys' : ''}`}
      kind="danger"
      hint={MEMBERS_READ}
      act={(reason) =>
        api
          .post('/v1/operator/users/{id}/end-sessions', { ...at(id), body: { reason, revoke_api_keys } })
          .then(({ sessions, api_keys }) => say(`Ended sessions: ${sessions}. Revoked API keys: ${api_keys}.`))
      }
    >
      <p>The user is signed out everywhere at once, and can sign in again. What runs goes on.</p>
      <CheckBox
        label="Also revoke the API keys that the user has created, those of the team, too"
        checked={revoke_api_keys}
        onChange={({ target }) => setDraft({ revoke_api_keys: target.checked })}
      />
    </ReasonButton>
  );
}

function RemoveFactors({ user: { id, email } }: Props) {
  return (
    <ReasonButton
      label="Remove second factors"
      title={`Remove all second factors of ${email} in 24 hours`}
      kind="danger"
      hint="The user reads it in a mail, where this control plane sends mail."
      act={(reason) => api.post('/v1/operator/users/{id}/second-factor-removal', { ...at(id), body: { reason } })}
    >
      <p>
        First make sure who asks you, by another way than the mail address of the account. The user can cancel it until
        then, and is told at “Account”, and by mail where this control plane sends mail. Then all sessions of the user
        end, and the password alone is enough to sign in.
      </p>
    </ReasonButton>
  );
}

function Grant({ user: { id, email } }: Props) {
  return (
    <ReasonButton
      label="Make operator"
      title={`Make ${email} an operator`}
      kind="danger"
      hint={OPERATORS_READ}
      act={(reason) => api.put('/v1/operator/users/{id}/operator', { ...at(id), body: { reason } })}
    >
      <p>
        An operator can do everything on these pages: give credit, suspend, destroy instances of everybody, and make
        other users operators.
      </p>
    </ReasonButton>
  );
}

function Withdraw({ user: { id, email } }: Props) {
  return (
    <ReasonButton
      label="Withdraw operator"
      title={`Make ${email} an ordinary user`}
      kind="danger"
      hint={OPERATORS_READ}
      act={(reason) => api.delete('/v1/operator/users/{id}/operator', { ...at(id), body: { reason } })}
    >
      <p>It holds from the next request on. The account, its organizations and its keys stay.</p>
    </ReasonButton>
  );
}

function Remove({ user: { id, email } }: Props) {
  const navigate = useNavigate();
  return (
    <ConfirmButton
      label="Remove"
      about={email}
      title={`Remove the account of ${email}`}
      act={() => api.delete('/v1/operator/users/{id}', at(id))}
      old={OPERATED}
      onDone={() => void navigate({ to: '/operator/users', search: {} })}
    >
      <p>
        Its sessions, memberships and keys end at once, also the API keys that it has made for a team, and cannot be
        brought back. The address becomes free. Instances stay with their organizations. One of which it is the last
        admin has none any more, and can only be helped by you; while that has instances, the account is not removed.
      </p>
    </ConfirmButton>
  );
}
