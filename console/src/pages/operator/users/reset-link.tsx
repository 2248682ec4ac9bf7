import { useState } from 'react';
import { api } from '../../../data/api/api.js';
import { SecretDialog } from '../../../parts/controls/secret-dialog.js';
import { Ago } from '../../../parts/values/time.js';
import type { OperatedUser } from '../models.js';
import { ReasonButton } from '../reason-button.js';

/** Makes a link to a new password, and shows it once: nothing keeps it after the dialog is closed. */
export function ResetLink({ user: { id, email }, hint }: { user: OperatedUser; hint: string }) {
  const [made, setMade] = useState<{ token: string; expires_at: string }>();
  return (
    <>
      <ReasonButton
        label="Reset password"
        title={`Make a link with which ${email} sets a new password`}
        hint={hint}
        act={(reason) =>
          api
            .post('/v1/operator/users/{id}/password-reset', { params: { path: { id } }, body: { reason } })
            .then(setMade)
        }
      >
        <p>
          Whoever has the link gets the account: first make sure who asks you. The password of now works until the link
          is used.
        </p>
      </ReasonButton>
      {made && (
        <SecretDialog
          title={`Pass this link on to ${email}`}
          label="Link to a new password"
          secret={linkOf(made.token)}
          onClose={() => setMade(undefined)}
        >
          <p>
            It is shown only here, works once, and expires <Ago at={made.expires_at} />.
          </p>
        </SecretDialog>
      )}
    </>
  );
}

function linkOf(token: string): string {
  return `${location.origin}/reset-password?${new URLSearchParams({ token }).toString()}`;
}
