import { Type } from 'typebox';
import { destroyForOperator, stopForOperator } from '../../../services/actions/operator-actions.js';
import { listAllInstances, type OperatedInstance as Details } from '../../../services/actions/operator-list.js';
import { INSTANCE_ERRORS } from '../../../domain/instances/instance-codes.js';
import { WAIT_REASONS } from '../../../domain/instances/wait.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
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
} from '../../schema/schemas.js';
import { Instance } from '../instances/instance-view.js';
import { idOf, NoContent, page, pageFields, viewPage, type Routes } from '../routes.js';

const { status, disk_gb, error_code, deployed_by, label, price_per_hour_micro } = Instance.properties;
const Wait = Type.Object(
  {
    command: text('The open command of its host: `provision`, `start`, `stop`, `release`, ...'),
    since: timestamp('Since when the command is open'),
    reason: choice([...WAIT_REASONS], 'What the command waits for'),
    message: text('The reason in words, or the last message of the host'),
  },
  { description: 'The open command that the instance waits for; null: its host has no open command' },
);
const OperatedInstance = Type.Object(
  {
    id: uuid('The id of the instance'),
    label,
    organization_id: uuid('The id of the organization that rents the instance'),
    organization_name: text('The name of that organization'),
    deployed_by,
    deployed_by_email: nullable(
      text(
        'The e-mail address of the user who deployed it, or who created the API key that did; null: the account was removed',
      ),
    ),
    machine_id: uuid('The id of its machine'),
    machine_name: text('The name of that machine'),
    status,
    error_code,
    waits_for: nullable(Wait),
    num_gpus: integer('The number of its GPUs'),
    price_per_hour_micro,
    disk_gb,
    created_at: timestamp('When the instance was deployed'),
    status_changed_at: timestamp('When its status last changed'),
  },
  { title: 'OperatedInstance' },
);

const InstanceQuery = Type.Object({
  ...pageFields,
  ...optional({
    id: uuid('Only the instance with this id, also where it is destroyed'),
    organization_id: uuid('Only instances of this organization'),
    machine_id: uuid('Only instances on this machine'),
    status: meaning(status, 'Only instances in this status'),
    error_code: choice([...INSTANCE_ERRORS], 'Only instances with this error'),
    waiting: flag('True: only instances that wait for their host (`waits_for`); false: only the others'),
  }),
});

const reason = nameOf('The reason; the renter sees it in the events of the instance', 256);

/** Routes for operators: instances of all organizations. */
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
      config: { ...config, servedOnFullDisk: true, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'stopAnyInstance',
        summary: 'Stop a running instance of any organization',
        description:
          'Has the same effect as a stop by its renter: the disk is kept, and the renter can start the instance again.',
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
      config: { ...config, servedOnFullDisk: true, proof: true, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'destroyAnyInstance',
        summary: 'Destroy an instance of any organization: its container and its disk are removed',
        description:
          'Has the same effect as a destroy by its renter. The reason can be omitted only for an instance in `error`.',
        params: idOf('instance'),
        body: body(optional({ reason })),
        response: { 202: NoContent },
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
