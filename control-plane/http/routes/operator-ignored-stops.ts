import { Type } from 'typebox';
import { creditIgnoredStop, listIgnoredStops } from '../../services/billing/ignored-stops.js';
import { OPERATOR, accountOf } from '../policy.js';
import { body, flag, iso, micro, nameOf, timestamp, uuid } from '../schemas.js';
import { Credit } from './operator.js';
import { idOf, page, PageQuery, viewPage, type Routes } from './routes.js';

const IgnoredStop = Type.Object(
  {
    instance_id: uuid('The instance that did not stop'),
    organization_id: uuid('The organization that was charged'),
    machine_id: uuid('The machine on which it is'),
    since: timestamp('When the stop timed out and the instance was charged again'),
    charged_micro: micro('What was charged since then and is not credited'),
    is_open: flag('Whether it is still charged'),
  },
  { title: 'IgnoredStop' },
);

/** Operators: instances that are charged though their stop has timed out, and the credit for it. */
export const operatorIgnoredStopRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/ignored-stops',
    {
      config,
      schema: {
        operationId: 'listIgnoredStops',
        summary: 'List the instances that were charged after a stop that their host did not confirm, oldest first',
        querystring: PageQuery,
        response: { 200: page(IgnoredStop) },
      },
    },
    (request) => viewPage(listIgnoredStops(platform, request.query), (stop) => ({ ...stop, since: iso(stop.since) })),
  );
  app.post(
    '/v1/operator/instances/:id/credit-ignored-stop',
    {
      config: { ...config, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'creditIgnoredStop',
        summary: 'Credit what an instance was charged since a stop that its host did not confirm',
        description: 'One transaction for all of it.',
        params: idOf('instance'),
        body: body({ reason: nameOf('Why: the renter sees it among the transactions', 256) }),
        response: { 201: Credit },
      },
    },
    (request, reply) => {
      const credit = creditIgnoredStop(platform, accountOf(request), request.params.id, request.body.reason);
      void reply.code(201);
      return { ...credit, created_at: iso(credit.created_at) };
    },
  );
};
