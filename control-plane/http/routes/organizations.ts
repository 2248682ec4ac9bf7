import { Type } from 'typebox';
import { createInvite, listInvites, withdrawInvite, type InviteDetails } from '../../services/accounts/invites.js';
import {
  changeRole,
  listMembers,
  removeMember,
  type Member as MemberDetails,
} from '../../services/accounts/members.js';
import {
  createOrganization,
  describeOrganization,
  renameOrganization,
  type OrganizationDetails,
} from '../../services/accounts/organizations.js';
import { ACCOUNT, ADMIN, MEMBER, accountOf, callerOf, sessionOf } from '../policy.js';
import { Micro, Timestamp, Uuid, body, iso, nameOf } from '../schemas.js';
import { Email, RoleName } from './accounts.js';
import { IdParams, NoContent, PageQuery, page, viewPage, type Routes } from './routes.js';

const Organization = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    balance_micro: Micro,
    payments_frozen: Type.Boolean(),
    burn_per_hour_micro: Micro,
    created_at: Timestamp,
  },
  { title: 'Organization' },
);
const NameBody = body({ name: nameOf(64) });
const Member = Type.Object(
  {
    id: Uuid,
    email: Type.String(),
    name: Type.String(),
    role: RoleName,
    joined_at: Timestamp,
  },
  { title: 'Member' },
);
const Invite = Type.Object(
  {
    id: Uuid,
    email: Type.String(),
    role: RoleName,
    created_at: Timestamp,
    expires_at: Timestamp,
  },
  { title: 'Invite' },
);

export const organizationRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/orgs',
    {
      config: { policy: ACCOUNT, refusals: ['LIMIT_REACHED'] },
      schema: { summary: 'Make an organization, as its admin', body: NameBody, response: { 201: Organization } },
    },
    (request, reply) => {
      void reply.code(201);
      return organizationView(createOrganization(platform, accountOf(request), request.body));
    },
  );

  app.get(
    '/v1/orgs/current',
    {
      config: { policy: MEMBER },
      schema: { summary: 'The active organization: balance and burn', response: { 200: Organization } },
    },
    (request) => organizationView(describeOrganization(platform, callerOf(request))),
  );

  app.patch(
    '/v1/orgs/current',
    {
      config: { policy: ADMIN },
      schema: { summary: 'Rename the organization', body: NameBody, response: { 200: Organization } },
    },
    (request) => organizationView(renameOrganization(platform, sessionOf(request), request.body)),
  );

  app.get(
    '/v1/orgs/current/members',
    {
      config: { policy: ADMIN },
      schema: { summary: 'Members, first joined first', querystring: PageQuery, response: { 200: page(Member) } },
    },
    (request) => viewPage(listMembers(platform, sessionOf(request), request.query), memberView),
  );

  app.patch(
    '/v1/orgs/current/members/:id',
    {
      config: { policy: ADMIN, refusals: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'] },
      schema: {
        summary: "Change a member's role",
        params: IdParams,
        body: body({ role: RoleName }),
        response: { 200: Member },
      },
    },
    (request) => memberView(changeRole(platform, sessionOf(request), request.params.id, request.body.role)),
  );

  app.delete(
    '/v1/orgs/current/members/:id',
    {
      config: { policy: ADMIN, refusals: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'] },
      schema: {
        summary: 'Remove a member; its personal keys are revoked',
        params: IdParams,
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      removeMember(platform, sessionOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

/** Who is asked to join an organisation. */
export const inviteRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current/invites',
    {
      config: { policy: ADMIN },
      schema: { summary: 'Invitations that are open', querystring: PageQuery, response: { 200: page(Invite) } },
    },
    (request) => viewPage(listInvites(platform, sessionOf(request), request.query), inviteView),
  );

  app.post(
    '/v1/orgs/current/invites',
    {
      config: { policy: ADMIN, refusals: ['ALREADY_MEMBER', 'LIMIT_REACHED'] },
      schema: {
        summary: 'Invite somebody by e-mail address; the token is shown this once',
        body: body({ email: Email, role: Type.Enum(['admin', 'member'], { default: 'member' }) }),
        response: { 201: Type.Object({ invite: Invite, token: Type.String() }) },
      },
    },
    (request, reply) => {
      const { token, ...invite } = createInvite(platform, sessionOf(request), request.body);
      void reply.code(201);
      return { invite: inviteView(invite), token };
    },
  );

  app.delete(
    '/v1/orgs/current/invites/:id',
    {
      config: { policy: ADMIN, refusals: ['INVITE_NOT_FOUND'] },
      schema: { summary: 'Withdraw an invitation', params: IdParams, response: { 204: NoContent } },
    },
    (request, reply) => {
      withdrawInvite(platform, sessionOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function organizationView(organization: OrganizationDetails) {
  return {
    ...organization,
    payments_frozen: organization.payments_frozen_at !== null,
    created_at: iso(organization.created_at),
  };
}

function memberView(member: MemberDetails) {
  return { ...member, joined_at: iso(member.joined_at) };
}

function inviteView(invite: InviteDetails) {
  return { ...invite, created_at: iso(invite.created_at), expires_at: iso(invite.expires_at) };
}
