import { Type } from 'typebox';
import { listAllInstances, removeFailed } from '../../services/instances/error-expiry.js';
import { OPERATOR, accountOf } from '../policy.js';
import { iso, meaning, optional, timestamp, uuid } from '../schemas.js';
import { Instance } from './instances.js';
import { idOf, NoContent, page, pageFields, viewPage, type Routes } from './routes.js';

const { status, disk_gb, error_code } = Instance.properties;
const OperatedInstance = Type.Object(
  {
    id: uuid('The id of the instance'),
    organization_id: uuid('The id of the organization that rents it'),
    machine_id: uuid('The id of its machine'),
    status,
    error_code,
    disk_gb,
    created_at: timestamp('When it was deployed'),
    status_changed_at: timestamp('When it came into its present status'),
  },
  { title: 'OperatedInstance' },
);

const InstanceQuery = Type.Object({
  ...pageFields,
  ...optional({
    machine_id: uuid('Only instances on this machine'),
    status: meaning(status, 'Only instances in this status'),
  }),
});

/** Operators: what renters have, and the end of what nobody can use any more. */
export const operatorInstanceRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/instances',
    {
      config,
      schema: {
        operationId: 'listAllInstances',
        summary: 'List the instances of all organizations that are not destroyed, newest first',
        querystring: InstanceQuery,
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
        operationId: 'removeFailedInstance',
        summary: 'Destroy an instance that is in error',
        params: idOf('instance'),
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
