import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { api } from '../../../../../data/api/api.js';
import { changedFields } from '../../../../../data/forms/changed-fields.js';
import { ConfirmButton } from '../../../../../parts/controls/confirm-button.js';
import { Page } from '../../../../../parts/layout/page.js';
import { Empty, Loaded } from '../../../../../parts/controls/states.js';
import type { Issuer } from '../../../models.js';
import { OPERATED } from '../../../queries.js';
import { bodyOf } from '../draft.js';
import { signIns } from '../queries.js';
import { SignInForm } from '../sign-in-form.js';

const route = getRouteApi('/operator/users/sign-ins/$id');

export default function SignInPage() {
  const { id } = route.useParams();
  // What stands in the form is not to change below the fingers.
  const query = useQuery({ ...signIns, refetchInterval: false });
  const issuer = query.data?.find((each) => each.id === id);
  return (
    <Page
      title={issuer?.name ?? 'Sign-in of a company'}
      lead="Changes count from the next sign-in on. Sessions go on."
      actions={issuer && <Remove issuer={issuer} />}
    >
      <Loaded query={query} rows={8}>
        {() =>
          issuer === undefined ? (
            <Empty title="No company has this word">It is misspelled, or its sign-in was removed.</Empty>
          ) : (
            <SignInForm
              key={id}
              issuer={issuer}
              verb="Save"
              save={(draft, client_secret, before) => {
                const changed = changedFields(bodyOf(before), bodyOf(draft));
                const body = { ...changed, ...(client_secret === '' ? {} : { client_secret }) };
                return api.patch('/v1/operator/issuers/{id}', { params: { path: { id } }, body });
              }}
            />
          )
        }
      </Loaded>
    </Page>
  );
}

function Remove({ issuer: { id, name } }: { issuer: Issuer }) {
  const navigate = useNavigate();
  return (
    <ConfirmButton
      label="Remove"
      about={name}
      title={`Remove the sign-in of ${name}`}
      act={() => api.delete('/v1/operator/issuers/{id}', { params: { path: { id } } })}
      old={OPERATED}
      onDone={() => void navigate({ to: '/operator/users/sign-ins' })}
    >
      <p>
        Nobody signs in with it any more, and passwords count again for its domains. Sessions go on. Linked accounts
        count again if the same issuer is added again.
      </p>
    </ConfirmButton>
  );
}
