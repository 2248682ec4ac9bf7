import { Type } from 'typebox';
import { createInvite, listInvites, withdrawInvite, type InviteDetails } from '../../services/accounts/invites.js';
import {
  changeRole,
  listMembers,
  removeMember,
  type Member as MemberDetails,
} from '../../services/accounts/members.js';
import { ACCOUNT, ADMIN, MEMBER, accountOf, callerOf, sessionOf } from '../policy.js';
import { body, flag, iso, isoOrNull, meaning, micro, nameOf, nullable, text, timestamp, uuid } from '../schemas.js';
import { emailOf, roleOf } from './accounts.js';
import { idOf, NoContent, page, PageQuery, viewPage, type Routes } from './routes.js';
import {
  createOrganization,
  describeOrganization,
  renameOrganization,
  type OrganizationDetails,
} from '../../services/billing/organizations.js';

/** What members and operators alike are told of an organization. */
export const organizationFacts = {
  id: uuid('The id of the organization'),
  name: text('What it is called'),
  balance_micro: micro('What it has left; below zero it owes'),
  payments_frozen: flag('Whether a payment dispute is open: it can neither deploy nor start'),
  created_at: timestamp('When it was created'),
};
const Organization = Type.Object(
  {
    ...organizationFacts,
    burn_per_hour_micro: micro('What an hour of all that it has now costs'),
    lasts_until: nullable(
      timestamp('When the balance is used up by what is charged now; null: nothing is, or it lasts for a century'),
    ),
  },
  { title: 'Organization' },
);
const NameBody = body({ name: nameOf('What it is called', 64) });
export const Member = Type.Object(
  {
    id: uuid('The id of the user'),
    email: text('The e-mail address of the user'),
    name: text('What the user is called'),
    role: roleOf('the member'),
    joined_at: timestamp('When they joined'),
  },
  { title: 'Member' },
);
const Invite = Type.Object(
  {
    id: uuid('The id of the invitation'),
    email: text('The e-mail address that it is for'),
    role: roleOf('whoever accepts it'),
    created_at: timestamp('When it was created'),
    expires_at: timestamp('Until when it can be accepted'),
  },
  { title: 'Invite' },
);

/** Organizations, for those who belong to them. */
export const organizationRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/orgs',
    {
      config: { policy: ACCOUNT, refusals: ['LIMIT_REACHED'] },
      schema: {
        operationId: 'createOrganization',
        summary: 'Create an organization, as its admin',
        body: NameBody,
        response: { 201: Organization },
      },
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
      schema: {
        operationId: 'getOrganization',
        summary: 'Get the active organization with its balance and its burn',
        response: { 200: Organization },
      },
    },
    (request) => organizationView(describeOrganization(platform, callerOf(request))),
  );

  app.patch(
    '/v1/orgs/current',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'renameOrganization',
        summary: 'Rename the active organization',
        body: NameBody,
        response: { 200: Organization },
      },
    },
    (request) => organizationView(renameOrganization(platform, sessionOf(request), request.body)),
  );
};

/** Who belongs to an organization. */
export const memberRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current/members',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'listMembers',
        summary: 'List the members, first joined first',
        querystring: PageQuery,
        response: { 200: page(Member) },
      },
    },
    (request) => viewPage(listMembers(platform, sessionOf(request), request.query), memberView),
  );

  app.patch(
    '/v1/orgs/current/members/:id',
    {
      config: { policy: ADMIN, refusals: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'] },
      schema: {
        operationId: 'changeMemberRole',
        summary: 'Change the role of a member',
        description: 'The last admin stays one.',
        params: idOf('member'),
        body: body({ role: roleOf('the member') }),
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
        operationId: 'removeMember',
        summary: 'Remove a member',
        description: 'Their personal API keys are revoked. The last admin stays.',
        params: idOf('member'),
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

/** Who is to join an organization. */
export const inviteRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current/invites',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'listInvites',
        summary: 'List the open invitations',
        querystring: PageQuery,
        response: { 200: page(Invite) },
      },
    },
    (request) => viewPage(listInvites(platform, sessionOf(request), request.query), inviteView),
  );

  app.post(
    '/v1/orgs/current/invites',
    {
      config: { policy: ADMIN, refusals: ['ALREADY_MEMBER', 'LIMIT_REACHED'] },
      schema: {
        operationId: 'createInvite',
        summary: 'Invite somebody by e-mail address',
        description: 'The token is in this answer and nowhere else; nothing is mailed.',
        body: body({ email: emailOf('whom to invite'), role: roleOf('whoever accepts it', { default: 'member' }) }),
        response: {
          201: Type.Object({
            invite: meaning(Invite, 'The invitation, as the list shows it'),
            token: text('What it is accepted with: give it to whom you invite'),
          }),
        },
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
      schema: {
        operationId: 'withdrawInvite',
        summary: 'Withdraw an invitation',
        params: idOf('invitation'),
        response: { 204: NoContent },
      },
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
    lasts_until: isoOrNull(organization.lasts_until),
    created_at: iso(organization.created_at),
  };
}

export function memberView(member: MemberDetails) {
  return { ...member, joined_at: iso(member.joined_at) };
}

function inviteView(invite: InviteDetails) {
  return { ...invite, created_at: iso(invite.created_at), expires_at: iso(invite.expires_at) };
}
