import { Type } from 'typebox';
import { deploy } from '../../services/instances/deploy.js';
import { destroy } from '../../services/instances/destroy.js';
import { readLogs } from '../../services/instances/logs.js';
import { getInstance, listEvents, listInstances, type InstanceDetails } from '../../services/instances/read.js';
import { start } from '../../services/instances/start.js';
import { stop } from '../../services/instances/stop.js';
import { MEMBER, callerOf } from '../policy.js';
import { IdempotencyHeaders, Micro, Timestamp, Uuid, body, iso, isoOrNull, nullable, nameOf } from '../schemas.js';
import { IdParams, PageQuery, page, pageFields, viewPage, type Routes } from './routes.js';
import { EnvVariable, Template, templateView } from './templates.js';

export const Instance = Type.Object(
  {
    id: Uuid,
    label: nullable(Type.String()),
    status: Type.Enum(['creating', 'starting', 'running', 'stopping', 'stopped', 'destroying', 'destroyed', 'error']),
    disk_gb: Type.Integer(),
    price_per_hour_micro: Micro,
    storage_price_per_gb_hour_micro: Micro,
    ssh_host: nullable(Type.String()),
    ssh_port: nullable(Type.Integer()),
    ssh_user: Type.String(),
    ssh_ready_at: nullable(Timestamp),
    jupyter_url: nullable(Type.String()),
    open_url: nullable(Type.String()),
    access_token: nullable(Type.String()),
    access_replacement: nullable(Type.Enum(['pending', 'applied', 'token_only', 'refused'])),
    error_code: nullable(Type.String()),
    error_message: nullable(Type.String()),
    allowed_actions: Type.Array(Type.String()),
    gpus_released: Type.Boolean(),
    gpu_release: nullable(Type.String()),
    gpu_release_requested_at: nullable(Timestamp),
    stop_releases_gpus: Type.Boolean(),
    releases_gpus_at: nullable(Timestamp),
    hold_price_per_hour_micro: Type.Null(),
    stop_hold_price_per_hour_micro: Type.Null(),
    suspended_hold_price_per_hour_micro: Type.Null(),
    created_at: Timestamp,
    started_at: nullable(Timestamp),
    status_changed_at: Timestamp,
    destroyed_at: nullable(Timestamp),
    spend_micro: Micro,
    deployed_by: Type.String(),
    deployed_via_api_key: nullable(
      Type.Object({
        id: Uuid,
        name: Type.String(),
        kind: Type.String(),
        prefix: Type.String(),
        revoked: Type.Boolean(),
      }),
    ),
    offer: Type.Object({ id: Uuid }),
    template: Template,
  },
  { title: 'Instance' },
);

/** A hundred overrides of the longest kind fit in, with each character written as two escapes. */
const DEPLOY_LIMIT_BYTES = 6 * 1024 * 1024;

export const DiskGb = Type.Integer({ minimum: 10, maximum: 20000 });
export const Label = Type.Optional(nullable(nameOf(64, 0)));

const DeployBody = body({
  offer_id: Uuid,
  template_id: Uuid,
  disk_gb: DiskGb,
  label: Label,
  // Whatever names no key that may be attached is SSH_KEY_NOT_FOUND.
  ssh_key_id: Type.Optional(nullable(Type.String())),
  env_overrides: Type.Array(EnvVariable, { maxItems: 100, default: [] }),
});

const Event = Type.Object({ at: Timestamp, kind: Type.String(), message: Type.String() }, { title: 'InstanceEvent' });

/** Deploy, stop, start, destroy. */
export const instanceRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/instances',
    {
      bodyLimit: DEPLOY_LIMIT_BYTES,
      config: {
        policy: MEMBER,
        refusals: [
          'TEMPLATE_NOT_FOUND',
          'TEMPLATE_COMING_SOON',
          'TEMPLATE_ARCH_UNSUPPORTED',
          'TEMPLATE_REQUIRES_OWNER',
          'OFFER_UNAVAILABLE',
          'OFFER_NOT_PINNABLE',
          'OFFER_NOT_VM_CAPABLE',
          'TEMPLATE_CUDA_TOO_NEW',
          'DISK_TOO_LARGE',
          'SSH_KEY_NOT_FOUND',
          'MACHINE_IN_MAINTENANCE',
          'MACHINE_DISK_EXHAUSTED',
          'INSTANCE_LIMIT_REACHED',
          'PAYMENTS_FROZEN',
          'INSUFFICIENT_BALANCE',
          'IDEMPOTENCY_KEY_REUSED',
        ],
      },
      schema: {
        summary: 'Deploy: rent an offer and run a template on it',
        headers: IdempotencyHeaders,
        body: DeployBody,
        response: { 201: Instance },
      },
    },
    (request, reply) => {
      const { label = null, ssh_key_id = null, ...rest } = request.body;
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
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: { summary: 'Stop: the workload ends, its disk is kept', params: IdParams, response: { 202: Instance } },
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
          'PAYMENTS_FROZEN',
          'INSUFFICIENT_BALANCE',
          'CAPACITY_UNAVAILABLE',
          'HOST_UNREACHABLE',
          'START_REFUSED',
          'START_UNAVAILABLE',
        ],
      },
      schema: { summary: 'Start again, on the same disk and GPUs', params: IdParams, response: { 202: Instance } },
    },
    async (request, reply) => {
      void reply.code(202);
      return instanceView(await start(platform, callerOf(request), request.params.id));
    },
  );

  app.delete(
    '/v1/instances/:id',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        summary: 'Destroy: container, disk and contents are removed',
        params: IdParams,
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

/** What there is, and how it goes. */
export const instanceReadingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/instances',
    {
      config: { policy: MEMBER },
      schema: {
        summary: "The organization's instances, newest first",
        querystring: Type.Object({ ...pageFields, include_destroyed: Type.Boolean({ default: false }) }),
        response: { 200: page(Instance) },
      },
    },
    (request) => viewPage(listInstances(platform, callerOf(request), request.query), instanceView),
  );

  app.get(
    '/v1/instances/:id',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: { summary: 'One instance', params: IdParams, response: { 200: Instance } },
    },
    (request) => instanceView(getInstance(platform, callerOf(request), request.params.id)),
  );

  app.get(
    '/v1/instances/:id/logs',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        summary: "The last lines of the workload's output",
        params: IdParams,
        querystring: Type.Object({ tail: Type.Integer({ minimum: 1, maximum: 1000, default: 200 }) }),
        response: { 200: Type.Object({ lines: Type.Array(Type.String()) }) },
      },
    },
    async (request) => ({
      lines: [...(await readLogs(platform, callerOf(request), request.params.id, request.query.tail))],
    }),
  );

  app.get(
    '/v1/instances/:id/events',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        summary: 'What happened to the instance, newest first',
        params: IdParams,
        querystring: PageQuery,
        response: { 200: page(Event) },
      },
    },
    (request) =>
      viewPage(listEvents(platform, callerOf(request), request.params.id, request.query), (event) => ({
        ...event,
        at: iso(event.at),
      })),
  );
};

export function instanceView(instance: InstanceDetails) {
  return {
    ...instance,
    gpus_released: instance.gpus_released === 1,
    gpu_release_requested_at: isoOrNull(instance.gpu_release_requested_at),
    hold_price_per_hour_micro: null,
    stop_hold_price_per_hour_micro: null,
    suspended_hold_price_per_hour_micro: null,
    created_at: iso(instance.created_at),
    started_at: isoOrNull(instance.started_at),
    ssh_ready_at: isoOrNull(instance.ssh_ready_at),
    releases_gpus_at: isoOrNull(instance.gpus_released ? null : instance.release_gpus_at),
    status_changed_at: iso(instance.status_changed_at),
    destroyed_at: isoOrNull(instance.destroyed_at),
    offer: { id: instance.offer_id },
    template: templateView(instance.template),
    allowed_actions: [...instance.allowed_actions],
  };
}
