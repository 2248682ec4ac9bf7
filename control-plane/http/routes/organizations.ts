import { Type } from 'typebox';
import { createInvite, listInvites, withdrawInvite, type InviteDetails } from '../../services/organizations/invites.js';
import {
  changeRole,
  listMembers,
  removeMember,
  type Member as MemberDetails,
} from '../../services/organizations/members.js';
import type { OrganizationRow } from '../../services/organizations/organizations.js';
import { ACCOUNT, ADMIN, READ_MONEY, accountOf, callerOf, sessionOf } from '../access/policy.js';
import {
  body,
  flag,
  iso,
  isoOrNull,
  meaning,
  micro,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schema/schemas.js';
import { emailOf, roleOf } from './identity/accounts.js';
import { idOf, NoContent, listOrPage, PageQuery, type Routes } from './routes.js';
import { answerList } from './whole-list.js';
import {
  createOrganization,
  describeOrganization,
  renameOrganization,
  type OrganizationDetails,
} from '../../services/billing/reports/billed-organizations.js';

const Suspension = Type.Object(
  {
    since: timestamp('When an operator suspended the organization'),
    reason: text('The reason that the operator gave'),
    disks_kept_until: timestamp('When its instances are destroyed with their disks, unless it is restored before'),
  },
  {
    description:
      'Why the organization can neither deploy nor start instances, because an operator has suspended it; null: it is not suspended',
  },
);

/** The fields of an organization that both members and operators see. */
export const organizationFacts = {
  id: uuid('The id of the organization'),
  name: text('The name of the organization'),
  balance_micro: micro('The balance; negative: the organization owes money'),
  payments_frozen: flag('Whether a payment dispute is open: the organization can neither deploy nor start instances'),
  suspension: nullable(Suspension),
  created_at: timestamp('When the organization was created'),
};
export const Organization = Type.Object(
  {
    ...organizationFacts,
    burn_per_hour_micro: micro(
      'The cost of one hour of all instances and disks that the organization has now: what the balance must cover',
    ),
    ...optional({
      charged_per_hour_micro: micro(
        'What one hour really charges: unlike the burn, it leaves out the disks of instances that run',
      ),
    }),
    lasts_until: nullable(
      timestamp(
        'When the balance runs out if the present charges continue; null: nothing is charged, or it lasts for a century',
      ),
    ),
    ...optional({
      takes_payments: flag(
        'Whether the marketplace has a payment provider; if not, only an operator adds to the balance, with a credit',
      ),
    }),
  },
  { title: 'Organization' },
);
const NameBody = body({ name: nameOf('The name of the organization', 64) });
export const Member = Type.Object(
  {
    id: uuid('The id of the user'),
    email: text('The e-mail address of the user'),
    name: text('The name of the user'),
    role: roleOf('the member'),
    joined_at: timestamp('When the user joined'),
  },
  { title: 'Member' },
);
const Invite = Type.Object(
  {
    id: uuid('The id of the invitation'),
    email: text('The e-mail address of the invited user'),
    role: roleOf('the invited user'),
    created_at: timestamp('When the invitation was created'),
    expires_at: timestamp('Until when the invitation can be accepted'),
  },
  { title: 'Invite' },
);

/** Routes for members: their organization. */
export const organizationRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/orgs',
    {
      config: { policy: ACCOUNT, refusals: ['LIMIT_REACHED'] },
      schema: {
        operationId: 'createOrganization',
        summary: 'Create an organization with the caller as its admin',
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
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'getOrganization',
        summary: 'Get the active organization with its balance and burn',
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

const makesAdmin = ({ role }: { role?: string }) => role === 'admin';

/** Routes for admins: the members of an organization. */
export const memberRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current/members',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'listMembers',
        summary: 'List the members, in the order in which they joined',
        querystring: PageQuery,
        response: { 200: listOrPage(Member) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (query) => listMembers(platform, sessionOf(request), query), memberView),
  );

  app.patch(
    '/v1/orgs/current/members/:id',
    {
      config: { policy: ADMIN, proof: makesAdmin, refusals: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'] },
      schema: {
        operationId: 'changeMemberRole',
        summary: 'Change the role of a member',
        description:
          'The role of the last admin cannot be changed. A change from `admin` or `member` to `viewer` or `billing` revokes the personal API keys of the member. A change from `admin` withdraws the invitations that the member has made.',
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
        description:
          'Revokes the personal API keys of the member, and withdraws the invitations that the member has made. The last admin cannot be removed.',
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

/** Routes for admins: invitations to an organization. */
export const inviteRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current/invites',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'listInvites',
        summary: 'List the open invitations',
        querystring: PageQuery,
        response: { 200: listOrPage(Invite) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (query) => listInvites(platform, sessionOf(request), query), inviteView),
  );

  app.post(
    '/v1/orgs/current/invites',
    {
      config: {
        policy: ADMIN,
        proof: makesAdmin,
        refusals: ['ORGANIZATION_SUSPENDED', 'ALREADY_MEMBER', 'LIMIT_REACHED'],
      },
      schema: {
        operationId: 'createInvite',
        summary: 'Create an invitation for an e-mail address',
        description:
          'Only this response contains the token, and the mail that the control plane sends to the address if `mailed` is true. Invitations by mail have bounds by account, address and network: beyond them, the invitation is made without a mail.',
        body: body({ email: emailOf('the user to invite'), role: roleOf('the invited user', { default: 'member' }) }),
        response: {
          201: Type.Object({
            invite: meaning(Invite, 'The invitation, as the list shows it'),
            token: text('The token that accepts the invitation: give it to the user whom you invite'),
            ...optional({
              mailed: flag(
                'Whether the control plane sends the token to the address: not where it sends no mail, not to an address that wants no such mails, and not where too many were sent lately',
              ),
            }),
          }),
        },
      },
    },
    (request, reply) => {
      const { token, mailed, ...invite } = createInvite(platform, sessionOf(request), request.body);
      void reply.code(201);
      return { invite: inviteView(invite), token, mailed };
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

export function organizationView(organization: OrganizationDetails) {
  return {
    ...organization,
    payments_frozen: organization.payments_frozen_at !== null,
    suspension: suspensionView(organization),
    lasts_until: isoOrNull(organization.lasts_until),
    created_at: iso(organization.created_at),
  };
}

export function suspensionView({ suspended_at, suspended_reason, disks_kept_until }: OrganizationRow) {
  if (suspended_at === null || disks_kept_until === null) return null;
  return { since: iso(suspended_at), reason: suspended_reason ?? '', disks_kept_until: iso(disks_kept_until) };
}

export function memberView(member: MemberDetails) {
  return { ...member, joined_at: iso(member.joined_at) };
}

function inviteView(invite: InviteDetails) {
  return { ...invite, created_at: iso(invite.created_at), expires_at: iso(invite.expires_at) };
}
