import { Type } from 'typebox';
import { listUsers, listUsersOf, removeUser } from '../../../services/identity/operators/remove-user.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import { flag, iso, optional, text } from '../../schema/schemas.js';
import { User } from '../identity/accounts.js';
import { Member, memberView } from '../organizations.js';
import { idOf, NoContent, page, pageFields, PageQuery, viewPage, type Routes } from '../routes.js';

export const OperatedUser = Type.Object(
  { ...User.properties, is_operator: flag('Whether the user can use the routes under /v1/operator') },
  { title: 'OperatedUser' },
);

/** Routes for operators: users and their removal. */
export const operatorUserRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/users',
    {
      config,
      schema: {
        operationId: 'listUsers',
        summary: 'List the users, newest first',
        querystring: Type.Object({
          ...pageFields,
          ...optional({ email: text('Only the user with this e-mail address', { maxLength: 254 }) }),
        }),
        response: { 200: page(OperatedUser) },
      },
    },
    (request) =>
      viewPage(listUsers(platform, request.query), (user) => ({
        ...user,
        is_operator: user.is_operator === 1,
        created_at: iso(user.created_at),
      })),
  );
  app.get(
    '/v1/operator/organizations/:id/users',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        operationId: 'listUsersOfOrganization',
        summary: 'List the members of an organization, in the order in which they joined',
        params: idOf('organization'),
        querystring: PageQuery,
        response: { 200: page(Member) },
      },
    },
    (request) => viewPage(listUsersOf(platform, request.params.id, request.query), memberView),
  );
  app.delete(
    '/v1/operator/users/:id',
    {
      config: { ...config, proof: true, refusals: ['USER_NOT_FOUND', 'OWN_ACCOUNT', 'LAST_ADMIN'] },
      schema: {
        operationId: 'removeUser',
        summary: 'Remove a user',
        description:
          'Ends the sessions, API keys (including team keys) and memberships of the user at once; instances that the user has deployed stay. Refused for the last admin of an organization that has instances.',
        params: idOf('user'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      removeUser(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};
