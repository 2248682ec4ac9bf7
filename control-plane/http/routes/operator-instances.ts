import { Type } from 'typebox';
import { destroyForOperator, stopForOperator } from '../../services/actions/operator-actions.js';
import { listAllInstances, type OperatedInstance as Details } from '../../services/actions/operator-list.js';
import { INSTANCE_ERRORS } from '../../domain/instance-codes.js';
import { WAIT_REASONS } from '../../domain/wait.js';
import { OPERATOR, accountOf } from '../policy.js';
import {
  body,
  choice,
  flag,
  integer,
  iso,
  meaning,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schemas.js';
import { Instance } from './instances.js';
import { idOf, NoContent, page, pageFields, viewPage, type Routes } from './routes.js';

const { status, disk_gb, error_code, deployed_by } = Instance.properties;
const Wait = Type.Object(
  {
    command: text('What its host was told and has not answered for good: `provision`, `start`, `stop`, `release`, ...'),
    since: timestamp('Since when'),
    reason: choice([...WAIT_REASONS], 'What it waits for'),
    message: text('The same in words, or what the host has said last'),
  },
  { description: 'What it waits for; null where nothing is asked of its host' },
);
const OperatedInstance = Type.Object(
  {
    id: uuid('The id of the instance'),
    organization_id: uuid('The id of the organization that rents it'),
    organization_name: text('What that organization is called'),
    deployed_by,
    deployed_by_email: nullable(
      text('The e-mail address of who deployed it, or made the API key that did; null where the account was removed'),
    ),
    machine_id: uuid('The id of its machine'),
    machine_name: text('What that machine is called'),
    status,
    error_code,
    waits_for: nullable(Wait),
    num_gpus: integer('How many GPUs it was given'),
    disk_gb,
    created_at: timestamp('When it was deployed'),
    status_changed_at: timestamp('When it came into its present status'),
  },
  { title: 'OperatedInstance' },
);

const InstanceQuery = Type.Object({
  ...pageFields,
  ...optional({
    organization_id: uuid('Only instances of this organization'),
    machine_id: uuid('Only instances on this machine'),
    status: meaning(status, 'Only instances in this status'),
    error_code: choice([...INSTANCE_ERRORS], 'Only instances with this error'),
    waiting: flag('Only instances that wait for their host (`waits_for`), or only those that do not'),
  }),
});

const reason = nameOf('Why: the renter reads it among the events of the instance', 256);

/** Operators: what renters have, and the end of it. */
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
    (request) => viewPage(listAllInstances(platform, request.query), instanceOf),
  );
  app.post(
    '/v1/operator/instances/:id/stop',
    {
      config: { ...config, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'stopAnyInstance',
        summary: 'Stop a running instance of any organization',
        description: 'As its renter would: its disk is kept, and its renter may start it again.',
        params: idOf('instance'),
        body: body({ reason }),
        response: { 202: NoContent },
      },
    },
    (request, reply) => {
      stopForOperator(platform, accountOf(request), request.params.id, request.body.reason);
      void reply.code(202);
      return null;
    },
  );
  app.delete(
    '/v1/operator/instances/:id',
    {
      config: { ...config, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'destroyAnyInstance',
        summary: 'Destroy an instance of any organization: its container and its disk are removed',
        description: 'As its renter would. Only for an instance in `error` may the reason be left out.',
        params: idOf('instance'),
        body: body(optional({ reason })),
        response: { 202: NoContent },
      },
      preValidation: async (request) => {
        const sent: unknown = request.body;
        if (sent === undefined) request.body = {};
      },
    },
    (request, reply) => {
      destroyForOperator(platform, accountOf(request), request.params.id, request.body.reason);
      void reply.code(202);
      return null;
    },
  );
};

function instanceOf({ waits_for, created_at, status_changed_at, ...instance }: Details) {
  return {
    ...instance,
    waits_for: waits_for && { ...waits_for, since: iso(waits_for.since) },
    created_at: iso(created_at),
    status_changed_at: iso(status_changed_at),
  };
}
