import { useQuery } from '@tanstack/react-query';
import type { Me } from '../../data/api/models.js';
import { me } from '../../data/api/queries.js';
import { roleOf, ROLES } from '../../data/api/role.js';
import { Page } from '../../parts/layout/page.js';
import { Loaded, Notice } from '../../parts/controls/states.js';
import { Invites } from './invites.js';
import { Members } from './members.js';
import {
  LeaveOrganization,
  NewOrganization,
  OrganizationId,
  OrganizationName,
  SecondFactorDemand,
} from './organization.js';
import { TeamTabs } from './tabs.js';

export default function TeamPage() {
  const query = useQuery(me);
  const isAdmin = query.data !== undefined && roleOf(query.data) === 'admin';
  return (
    <Page title="Team" lead="Who may do what, and who has done what?" actions={<NewOrganization />}>
      {isAdmin && <TeamTabs shown="members" />}
      <Loaded query={query}>{(user) => <Team user={user} />}</Loaded>
    </Page>
  );
}

function Team({ user }: { user: Me }) {
  const { active_organization_id: organizationId, memberships } = user;
  const mine = memberships.find(({ organization_id }) => organization_id === organizationId);
  if (!mine) return null;
  const { name, role } = mine;
  const leaving = <LeaveOrganization id={mine.organization_id} name={name} role={role} />;
  const id = <OrganizationId id={mine.organization_id} />;
  if (role !== 'admin')
    return (
      <>
        <Notice>
          <p>
            You are a {role} of {name}: a {role} {ROLES.find(({ value }) => value === role)?.may}. Its admins see the
            members and what they have done.
          </p>
        </Notice>
        {id}
        {leaving}
      </>
    );
  return (
    <>
      <Members organization={name} userId={user.user.id} />
      <Invites />
      <OrganizationName name={name} />
      {id}
      <SecondFactorDemand name={name} />
      {leaving}
    </>
  );
}
