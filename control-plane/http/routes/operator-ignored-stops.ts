import { Type } from 'typebox';
import { creditIgnoredStop, listIgnoredStops } from '../../services/money/ignored-stops.js';
import { OPERATOR, accountOf } from '../policy.js';
import { Micro, Timestamp, Uuid, body, iso, nameOf } from '../schemas.js';
import { Credit } from './operator.js';
import { IdParams, PageQuery, page, viewPage, type Routes } from './routes.js';

const IgnoredStop = Type.Object(
  {
    instance_id: Uuid,
    organization_id: Uuid,
    machine_id: Uuid,
    since: Timestamp,
    charged_micro: Micro,
    is_open: Type.Boolean({ description: 'it is still charged, and not stopped' }),
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
        summary: 'What instances were charged after a stop that their host has not confirmed',
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
        summary: 'Credit what the instance was charged since that stop, in one row',
        params: IdParams,
        body: body({ reason: nameOf(256) }),
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
