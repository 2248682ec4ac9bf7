import { Type } from 'typebox';
import { listAllInstances, removeFailed } from '../../services/instances/error-expiry.js';
import { OPERATOR, accountOf } from '../policy.js';
import { Timestamp, Uuid, iso, nullable, optional } from '../schemas.js';
import { Instance } from './instances.js';
import { IdParams, NoContent, page, pageFields, viewPage, type Routes } from './routes.js';

const { status, disk_gb } = Instance.properties;
const OperatedInstance = Type.Object(
  {
    id: Uuid,
    organization_id: Uuid,
    machine_id: Uuid,
    status,
    error_code: nullable(Type.String()),
    disk_gb,
    created_at: Timestamp,
    status_changed_at: Timestamp,
  },
  { title: 'OperatedInstance' },
);

/** Operators: what renters have, and the end of what nobody can use any more. */
export const operatorInstanceRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/instances',
    {
      config,
      schema: {
        summary: 'Instances of all organizations that are not destroyed, newest first',
        querystring: Type.Object({ ...pageFields, ...optional({ machine_id: Uuid, status }) }),
        response: { 200: page(OperatedInstance) },
      },
    },
    (request) =>
      viewPage(listAllInstances(platform, request.query), (instance) => ({
        ...instance,
        created_at: iso(instance.created_at),
        status_changed_at: iso(instance.status_changed_at),
      })),
  );
  app.delete(
    '/v1/operator/instances/:id',
    {
      config: { ...config, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        summary: 'Destroy an instance that is in error',
        params: IdParams,
        response: { 202: NoContent },
      },
    },
    (request, reply) => {
      removeFailed(platform, accountOf(request), request.params.id);
      void reply.code(202);
      return null;
    },
  );
};
