import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import type { Role } from '../../data/api/models.js';
import { chooseOrganization, leaveOrganization } from '../../data/api/organization.js';
import { isDemotion } from '../../data/api/role.js';
import { Button } from '../../parts/controls/button.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { CopyLine } from '../../parts/controls/copy.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { At } from '../../parts/values/time.js';
import { NameDialog } from './name-dialog.js';
import styles from './page.module.css';
import { factorRequirement } from './queries.js';

/** The name of the organization, and the button that changes it. */
export function OrganizationName({ name }: { name: string }) {
  const [isOpen, setOpen] = useState(false);
  const rename = useAct(
    (to: string) => api.patch('/v1/orgs/current', { body: { name: to } }),
    [['me'], ['organization'], ['audit-log']],
    () => setOpen(false),
  );
  return (
    <Section
      title="Name"
      actions={
        <Button onClick={() => setOpen(true)} aria-haspopup="dialog">
          Rename
        </Button>
      }
    >
      <p>{name}</p>
      {isOpen && (
        <NameDialog
          title="Rename the organization"
          verb="Rename"
          name={name}
          act={rename}
          onClose={() => setOpen(false)}
        />
      )}
    </Section>
  );
}

/** The id of the organization, by which an operator finds it. */
export function OrganizationId({ id }: { id: string }) {
  return (
    <Section title="Id">
      <p>An operator who gives credit to your organization asks for it.</p>
      <CopyLine text={id} label="Id of the organization" />
    </Section>
  );
}

/** A button that makes another organization, whose admin is the caller, and goes on in it. */
export function NewOrganization() {
  const [isOpen, setOpen] = useState(false);
  const create = useAct(
    (name: string) => api.post('/v1/orgs', { body: { name } }),
    [],
    ({ id }) => chooseOrganization(id, '/team'),
  );
  return (
    <>
      <Button onClick={() => setOpen(true)} aria-haspopup="dialog">
        New organization
      </Button>
      {isOpen && (
        <NameDialog
          title="New organization"
          verb="Create"
          name=""
          act={create}
          hint="It has a balance, members and instances of its own. You are its admin."
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

/** Whether all members need a second factor, and the button that changes that. */
export function SecondFactorDemand({ name }: { name: string }) {
  const query = useQuery(factorRequirement);
  const put = (required: boolean) => () => api.put('/v1/orgs/current/second-factor', { body: { required } });
  const old = [factorRequirement.queryKey, ['audit-log']];
  return (
    <Section title="Second factor">
      <Loaded query={query} rows={1}>
        {({ required, since }) => (
          <div className={styles.line}>
            {required && since !== null ? (
              <p>
                Members need a second factor since <At at={since} />.
              </p>
            ) : (
              <p>Members can sign in without a second factor.</p>
            )}
            {required ? (
              <ConfirmButton
                old={old}
                label="Demand none"
                title={`Let members of ${name} in without a second factor`}
                act={put(false)}
              >
                <p>A password alone is enough then for everything that belongs to the organization.</p>
              </ConfirmButton>
            ) : (
              <ConfirmButton
                old={old}
                label="Demand one"
                kind="main"
                title={`Demand a second factor of all members of ${name}`}
                act={put(true)}
              >
                <p>
                  Members who have given none in their session see nothing of this organization at once, until they do.
                  API keys go on. You must have given one yourself in this session.
                </p>
              </ConfirmButton>
            )}
          </div>
        )}
      </Loaded>
    </Section>
  );
}

/** The button that ends the caller's own membership. */
export function LeaveOrganization({ id, name, role }: { id: string; name: string; role: Role }) {
  const hasKeys = isDemotion(role, 'viewer');
  return (
    <Section title="Leave">
      <div className={styles.line}>
        <p>
          Instances, keys of the team and money stay with the organization.
          {role === 'admin' && ' Its last admin cannot leave.'}
        </p>
        <ConfirmButton
          label="Leave"
          title={`Leave ${name}${hasKeys ? ' and lose your personal API keys of it' : ''}`}
          act={() => api.delete('/v1/me/organizations/{id}', { params: { path: { id } } })}
          old={[]}
          onDone={() => leaveOrganization('/instances')}
        >
          <p>You see nothing of it any more. To come back you need an invitation of an admin.</p>
        </ConfirmButton>
      </div>
    </Section>
  );
}
