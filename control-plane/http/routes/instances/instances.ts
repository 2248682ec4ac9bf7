import type { RefusalCode } from '../../../domain/refusal.js';
import { deploy } from '../../../services/actions/deploy.js';
import { destroy } from '../../../services/actions/destroy.js';
import { start } from '../../../services/actions/start.js';
import { stop } from '../../../services/actions/stop.js';
import { MEMBER, callerOf } from '../../access/policy.js';
import {
  IdempotencyHeaders,
  body,
  integer,
  list,
  micro,
  nullable,
  optional,
  text,
  uuid,
} from '../../schema/schemas.js';
import { Label, limitFields, limitsFrom } from './instance-settings.js';
import { Instance, instanceView } from './instance-view.js';
import { idOf, type Routes } from '../routes.js';
import { EnvVariable } from '../templates.js';

/** The largest request body: 100 of the longest overrides fit, even if each character is written as two JSON escapes. */
export const DEPLOY_LIMIT_BYTES = 6 * 1024 * 1024;

export const DiskGb = integer("The size of the disk in GB, at most the size of the machine's disk", {
  minimum: 10,
  maximum: 20000,
});

export const DeployBody = body({
  offer_id: uuid('The offer to rent; it must be `available`'),
  template_id: uuid('The template to run: a system template, a public one or one of the organization'),
  disk_gb: DiskGb,
  ...optional({
    label: Label,
    // No pattern: any text that is not the id of an attachable key is refused with SSH_KEY_NOT_FOUND.
    ssh_key_id: nullable(
      text(
        "The id of the SSH key for the login: one of the caller's own; for a team API key, one of any member. Without it, nobody can log in by SSH",
      ),
    ),
    ...limitFields,
    max_gpu_per_hour_micro: nullable(
      micro('What an hour of the GPUs may cost: the `gpu_per_hour_micro` of the estimate; null: whatever it is', {
        minimum: 0,
      }),
    ),
    max_disk_per_hour_micro: nullable(
      micro('What an hour of the disk may cost: the `disk_per_hour_micro` of the estimate; null: whatever it is', {
        minimum: 0,
      }),
    ),
  }),
  env_overrides: list(
    EnvVariable,
    "Variables that replace or extend the template's environment, by `key`; entries whose value is null are ignored",
    {
      maxItems: 100,
      default: [],
    },
  ),
});

export const DEPLOY_REFUSALS: readonly RefusalCode[] = [
  'ORGANIZATION_SUSPENDED',
  'TEMPLATE_NOT_FOUND',
  'TEMPLATE_COMING_SOON',
  'TEMPLATE_ARCH_UNSUPPORTED',
  'TEMPLATE_REQUIRES_OWNER',
  'OFFER_UNAVAILABLE',
  'OFFER_NOT_PINNABLE',
  'OFFER_TOO_EXPENSIVE',
  'OFFER_NOT_VM_CAPABLE',
  'TEMPLATE_CUDA_TOO_NEW',
  'TEMPLATE_CUDA_TOO_OLD',
  'DISK_TOO_LARGE',
  'SSH_KEY_NOT_FOUND',
  'MACHINE_IN_MAINTENANCE',
  'MACHINE_DISK_EXHAUSTED',
  'INSTANCE_LIMIT_REACHED',
  'PAYMENTS_FROZEN',
  'INSUFFICIENT_BALANCE',
  'SPEND_LIMIT_REACHED',
  'IDEMPOTENCY_KEY_REUSED',
];

/** Routes that deploy, stop, start and destroy instances. */
export const instanceRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/instances',
    {
      bodyLimit: DEPLOY_LIMIT_BYTES,
      config: {
        policy: MEMBER,
        refusals: DEPLOY_REFUSALS,
      },
      schema: {
        operationId: 'deployInstance',
        summary: 'Deploy an instance: rent an offer and run a template on it',
        description:
          'The balance must cover one hour of all instances and disks of the organization, including this instance. A refused deploy reserves and charges nothing.',
        headers: IdempotencyHeaders,
        body: DeployBody,
        response: { 201: Instance },
      },
    },
    (request, reply) => {
      const { label = null, ssh_key_id = null, ...rest } = limitsFrom(request.body);
      const key = request.headers['idempotency-key'];
      const { instance, replayed } = deploy(platform, callerOf(request), { ...rest, label, ssh_key_id }, key);
      void reply.code(201);
      if (replayed) void reply.header('Idempotent-Replayed', 'true');
      return instanceView(instance);
    },
  );

  app.post(
    '/v1/instances/:id/stop',
    {
      config: { policy: MEMBER, servedOnFullDisk: true, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'stopInstance',
        summary: 'Stop a running instance',
        description:
          'Ends the workload and keeps its disk. Poll the instance until it is `stopped`; if its host does not confirm within 30 minutes, it is `running` again.',
        params: idOf('instance'),
        response: { 202: Instance },
      },
    },
    (request, reply) => {
      void reply.code(202);
      return instanceView(stop(platform, callerOf(request), request.params.id));
    },
  );

  app.post(
    '/v1/instances/:id/start',
    {
      config: {
        policy: MEMBER,
        refusals: [
          'INSTANCE_NOT_FOUND',
          'INVALID_STATE',
          'ORGANIZATION_SUSPENDED',
          'PAYMENTS_FROZEN',
          'INSUFFICIENT_BALANCE',
          'SPEND_LIMIT_REACHED',
          'CAPACITY_UNAVAILABLE',
          'HOST_UNREACHABLE',
          'START_REFUSED',
          'START_UNAVAILABLE',
        ],
      },
      schema: {
        operationId: 'startInstance',
        summary: 'Start a stopped instance, on the same disk and the same GPUs',
        description:
          'The balance must cover one hour of all instances and disks of the organization, including this instance.',
        params: idOf('instance'),
        response: { 202: Instance },
      },
    },
    async (request, reply) => {
      void reply.code(202);
      return instanceView(await start(platform, callerOf(request), request.params.id));
    },
  );

  app.delete(
    '/v1/instances/:id',
    {
      config: { policy: MEMBER, servedOnFullDisk: true, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'destroyInstance',
        summary: 'Destroy an instance: its container and its disk are removed',
        description:
          'Returns 202 for the first request. Returns 200 if the instance was already `destroying`; the control plane then sends the command to its host again.',
        params: idOf('instance'),
        response: { 200: Instance, 202: Instance },
      },
    },
    (request, reply) => {
      const { instance, repeated } = destroy(platform, callerOf(request), request.params.id);
      void reply.code(repeated ? 200 : 202);
      return instanceView(instance);
    },
  );
};
