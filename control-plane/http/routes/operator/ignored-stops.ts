import { Type } from 'typebox';
import { creditIgnoredStop, listIgnoredStops } from '../../../services/billing/ledger/ignored-stops.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import { body, flag, iso, micro, nameOf, text, timestamp, uuid } from '../../schema/schemas.js';
import { Credit } from './organizations.js';
import { idOf, listOrPage, PageQuery, viewPage, type Routes } from '../routes.js';

const IgnoredStop = Type.Object(
  {
    instance_id: uuid('The id of the instance that did not stop'),
    organization_id: uuid('The id of the organization that was charged'),
    organization_name: text('The name of that organization'),
    machine_id: uuid('The id of the machine of the instance'),
    machine_name: text('The name of that machine'),
    since: timestamp('When the stop timed out and the charges began again'),
    charged_micro: micro('The charges since then that have not been credited'),
    is_open: flag('Whether the instance is still charged'),
  },
  { title: 'IgnoredStop' },
);

/** Routes for operators: ignored stops, and the credit for them. */
export const operatorIgnoredStopRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/ignored-stops',
    {
      config,
      schema: {
        operationId: 'listIgnoredStops',
        summary:
          'List the instances that were charged after a stop that their host did not confirm in time, oldest first',
        querystring: PageQuery,
        response: { 200: listOrPage(IgnoredStop) },
      },
    },
    (request) => viewPage(listIgnoredStops(platform, request.query), (stop) => ({ ...stop, since: iso(stop.since) })),
  );
  app.post(
    '/v1/operator/instances/:id/credit-ignored-stop',
    {
      config: { ...config, proof: true, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'creditIgnoredStop',
        summary: 'Credit the charges of an instance since a stop that its host did not confirm in time',
        description: 'Posts one transaction for all of these charges.',
        params: idOf('instance'),
        body: body({ reason: nameOf('The reason; the renter sees it in the transactions', 256) }),
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
