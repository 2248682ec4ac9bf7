import { Type } from 'typebox';
import {
  askForRemoval,
  cancelRemovalOf,
  listRemovals,
  type RemovalDetails,
} from '../../../services/identity/factors/factor-removals.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import { body, iso, nameOf, text, timestamp, uuid } from '../../schema/schemas.js';
import { NoContent, PageQuery, idOf, page, viewPage, type Routes } from '../routes.js';

const FactorRemoval = Type.Object(
  {
    user_id: uuid('The user'),
    email: text('The e-mail address of the user'),
    asked_by: uuid('The operator who has asked for it'),
    reason: text('The reason that the operator gives'),
    asked_at: timestamp('When the operator has asked for it'),
    effective_at: timestamp('When the second factors are removed'),
  },
  { title: 'FactorRemoval' },
);

/** Routes for operators: users who have lost their second factors. */
export const operatorFactorRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/operator/second-factor-removals',
    {
      config: { policy: OPERATOR },
      schema: {
        operationId: 'listFactorRemovals',
        summary: 'List the removals of second factors that have not taken effect, the next one first',
        querystring: PageQuery,
        response: { 200: page(FactorRemoval) },
      },
    },
    (request) => viewPage(listRemovals(platform, request.query), removalView),
  );

  app.post(
    '/v1/operator/users/:id/second-factor-removal',
    {
      config: { policy: OPERATOR, proof: true, refusals: ['FACTOR_NOT_FOUND', 'OWN_ACCOUNT', 'USER_NOT_FOUND'] },
      schema: {
        operationId: 'removeFactorsOfUser',
        summary: 'Remove the second factors of a user who has lost them, in 24 hours',
        description:
          'The user is told by mail with your reason, and can cancel it. Then all second factors and recovery codes are removed, and all sessions of the user end. Make sure first who asks you. It is noted in the audit log.',
        params: idOf('user'),
        body: body({ reason: nameOf('Why; the user reads it', 200) }),
        response: { 201: FactorRemoval },
      },
    },
    (request, reply) => {
      void reply.code(201);
      return removalView(askForRemoval(platform, accountOf(request), request.params.id, request.body.reason));
    },
  );

  app.delete(
    '/v1/operator/users/:id/second-factor-removal',
    {
      config: { policy: OPERATOR, refusals: ['REMOVAL_NOT_FOUND'] },
      schema: {
        operationId: 'cancelFactorRemoval',
        summary: "Cancel the removal of a user's second factors",
        params: idOf('user'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      cancelRemovalOf(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function removalView({ user_id, email, asked_by, reason, asked_at, effective_at }: RemovalDetails) {
  return { user_id, email, asked_by, reason, asked_at: iso(asked_at), effective_at: iso(effective_at) };
}
