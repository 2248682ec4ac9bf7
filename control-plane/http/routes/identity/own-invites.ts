import { Type } from 'typebox';
import {
  acceptOwnInvite,
  listOwnInvites,
  type OwnInvite as OwnInviteDetails,
} from '../../../services/organizations/invites.js';
import { ACCOUNT, accountOf } from '../../access/policy.js';
import { iso, text, timestamp, uuid } from '../../schema/schemas.js';
import { JoinedOrganization, roleOf } from './accounts.js';
import { idOf, listOrPage, PageQuery, type Routes } from '../routes.js';
import { answerList } from '../whole-list.js';

const OwnInvite = Type.Object(
  {
    id: uuid('The id of the invitation'),
    organization: text('The name of the organization, as its admins call it'),
    role: roleOf('the invited user'),
    created_at: timestamp('When the invitation was created'),
    expires_at: timestamp('Until when the invitation can be accepted'),
  },
  { title: 'OwnInvite' },
);

/** Routes for the signed-in user: invitations to the user's address, which need no mail and no token. */
export const ownInviteRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/me/invites',
    {
      config: { policy: ACCOUNT },
      schema: {
        operationId: 'listOwnInvites',
        summary: 'List the open invitations to your address, newest first',
        description: 'Empty unless your address was confirmed.',
        querystring: PageQuery,
        response: { 200: listOrPage(OwnInvite) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (asked) => listOwnInvites(platform, accountOf(request), asked), ownInviteView),
  );

  app.post(
    '/v1/me/invites/:id/accept',
    {
      config: { policy: ACCOUNT, refusals: ['INVITE_NOT_FOUND', 'ALREADY_MEMBER'] },
      schema: {
        operationId: 'acceptOwnInvite',
        summary: 'Join the organization of an invitation to your address',
        params: idOf('invitation'),
        response: { 200: JoinedOrganization },
      },
    },
    (request) => acceptOwnInvite(platform, accountOf(request), request.params.id),
  );
};

function ownInviteView({ id, organization, role, created_at, expires_at }: OwnInviteDetails) {
  return { id, organization, role, created_at: iso(created_at), expires_at: iso(expires_at) };
}
