import { Type } from 'typebox';
import { GPU_RELEASES, INSTANCE_ACTIONS, INSTANCE_STATUSES } from '../../domain/instance-state.js';
import type { RefusalCode } from '../../domain/refusal.js';
import { deploy } from '../../services/actions/deploy.js';
import { destroy } from '../../services/actions/destroy.js';
import { readLogs, readLogsAfter } from '../../services/actions/logs.js';
import type { InstanceDetails } from '../../services/actions/instance-details.js';
import { getInstance, listEvents, listInstances } from '../../services/actions/read.js';
import { start } from '../../services/actions/start.js';
import { stop } from '../../services/actions/stop.js';
import { MEMBER, callerOf } from '../policy.js';
import {
  IdempotencyHeaders,
  body,
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  list,
  meaning,
  micro,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schemas.js';
import { kindOf } from './api-keys.js';
import { sendBody, textOf } from '../remembered-bodies.js';
import { idOf, listOrPage, pageFields, PageQuery, viewPage, type Routes } from './routes.js';
import { answerRememberedList } from './whole-list.js';
import { EnvVariable, Template, templateView } from './templates.js';

function holdPrice() {
  return nullable(micro('Reserved for a fee for held GPUs; always null, because no such fee is charged'));
}

const DeployingKey = Type.Object(
  {
    id: uuid('The id of the key'),
    name: text('The name of the key'),
    kind: kindOf(),
    prefix: text('The first 12 characters of its secret'),
    revoked: flag('Whether the key has been revoked since'),
  },
  { description: 'The API key that deployed the instance; null: a person did' },
);

export const Instance = Type.Object(
  {
    id: uuid('The id of the instance'),
    label: nullable(text('The label that its renter gave it')),
    status: choice(
      INSTANCE_STATUSES,
      'The status; `creating`, `starting`, `stopping` and `destroying` end without a request',
    ),
    disk_gb: integer('The size of its disk in GB; the disk is charged per hour while the instance is `stopped`'),
    price_per_hour_micro: micro('The price of one hour of GPU time for all its GPUs, as of the deploy'),
    storage_price_per_gb_hour_micro: micro('The price of one GB of disk for one hour, as of the deploy'),
    ssh_host: nullable(text('The public IP address of its machine; null until the workload is up')),
    ssh_port: nullable(integer('The port of its SSH server, never 22; null until the workload is up')),
    ssh_user: text('The user to log in as'),
    ssh_ready_at: nullable(timestamp('Since when its SSH server answers; null until it does')),
    jupyter_url: nullable(
      text('The URL of its JupyterLab, with the access token as the query parameter `token`; null until it answers'),
    ),
    open_url: nullable(
      text(
        'The URL of the port that the template marks with `open_button`; if the access proxy guards the port, with the access token as the query parameter `token`; null until it answers',
      ),
    ),
    access_token: nullable(
      text(
        'The access token for its JupyterLab and its guarded ports; null if the template uses none, and once the instance is `destroyed`',
      ),
    ),
    access_replacement: nullable(
      choice(
        ['pending', 'applied', 'token_only', 'refused'],
        'The state of the last replacement of access token and SSH key; `token_only`: the container keeps its old key; null: none was requested',
      ),
    ),
    error_code: nullable(
      text(
        'Why the instance is in `error`, such as `provision_failed` or `workload_completed`, or why its last stop or start failed: `stop_timed_out`, `start_timed_out`, `gpus_unavailable`; otherwise null. Later releases can add codes',
      ),
    ),
    error_message: nullable(text('A description of the error; null if `error_code` is null')),
    allowed_actions: list(
      Type.Enum([...INSTANCE_ACTIONS], { type: 'string' }),
      'The actions that the API accepts in the present status',
    ),
    gpus_released: flag(
      'True once the GPUs of the stopped instance are released; its disk stays, and a start must claim the same GPUs',
    ),
    gpu_release: nullable(
      choice(
        GPU_RELEASES,
        '`pending`: requested, not yet confirmed by the machine; `released`; `unsupported`: the machine cannot release GPUs, they stay reserved; null: no release was requested',
      ),
    ),
    gpu_release_requested_at: nullable(timestamp('When the release was requested')),
    stop_releases_gpus: flag(
      'True while a payment dispute is open: a stop then releases the GPUs, if the machine supports it',
    ),
    releases_gpus_at: nullable(
      timestamp(
        'When the GPUs of the stopped instance will be released by the terms of its offer; null: no time is set',
      ),
    ),
    hold_price_per_hour_micro: holdPrice(),
    stop_hold_price_per_hour_micro: holdPrice(),
    suspended_hold_price_per_hour_micro: holdPrice(),
    created_at: timestamp('When the instance was deployed'),
    started_at: nullable(timestamp('When its workload first started')),
    status_changed_at: timestamp('When its status last changed'),
    destroyed_at: nullable(timestamp('When the instance was destroyed')),
    spend_micro: micro('The total charged for the instance so far: the sum of its charges in the transactions'),
    deployed_by: text(
      'The e-mail address of the user who deployed it, or the name and prefix of the team API key that did',
    ),
    deployed_via_api_key: nullable(DeployingKey),
    offer: Type.Object({ id: uuid('The id of the offer') }, { description: 'The offer that the instance rents' }),
    template: meaning(Template, 'The template as of the deploy; `readme` and `onstart` are null'),
  },
  { title: 'Instance' },
);

/** The largest request body: 100 of the longest overrides fit, even if each character is written as two JSON escapes. */
const DEPLOY_LIMIT_BYTES = 6 * 1024 * 1024;

export const DiskGb = integer("The size of the disk in GB, at most the size of the machine's disk", {
  minimum: 10,
  maximum: 20000,
});
export const Label = nullable(nameOf('The label', 64, { minLength: 0 }));

const DeployBody = body({
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

const Event = Type.Object(
  {
    at: timestamp('When it happened'),
    kind: text('The kind of the event; later releases can add more'),
    message: text('A sentence that describes the event'),
  },
  { title: 'InstanceEvent' },
);

const Logs = Type.Object({
  lines: list(Type.String(), 'Standard output and standard error of the workload, oldest line first'),
  ...optional({
    next_after: text('The `after` of the next request; absent where the request had none'),
    lines_missed: nullable(
      flag(
        'Whether lines between `after` and these are no longer kept, because more than 1,000 were written; null: this is not known, as while the host is away; absent where the request had no `after`',
      ),
    ),
  }),
});

const DEPLOY_REFUSALS: readonly RefusalCode[] = [
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
          'PAYMENTS_FROZEN',
          'INSUFFICIENT_BALANCE',
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
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
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

const instanceText = textOf(Instance, instanceView);

/** Routes that read instances, their logs and their events. */
export const instanceReadingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/instances',
    {
      config: { policy: MEMBER, hasETag: true },
      schema: {
        operationId: 'listInstances',
        summary: "List the organization's instances, newest first",
        querystring: Type.Object({
          ...pageFields,
          include_destroyed: flag('Whether to include destroyed instances', { default: false }),
        }),
        response: { 200: listOrPage(Instance) },
      },
    },
    (request, reply) =>
      answerRememberedList(request, reply, (query) => listInstances(platform, callerOf(request), query), instanceText),
  );

  app.get(
    '/v1/instances/:id',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'], hasETag: true },
      schema: {
        operationId: 'getInstance',
        summary: 'Get an instance',
        params: idOf('instance'),
        response: { 200: Instance },
      },
    },
    (request, reply) => {
      const instance = getInstance(platform, callerOf(request), request.params.id);
      return sendBody(request.headers, reply, instance, () => instanceText(instance));
    },
  );

  app.get(
    '/v1/instances/:id/logs',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'getInstanceLogs',
        summary: 'Get the last lines of the output of an instance',
        description:
          'The list is empty until the workload has run for the first time. With `after`, the answer says where the next request goes on, so that a client that polls gets each line once.',
        params: idOf('instance'),
        querystring: Type.Object({
          tail: integer('The maximum number of lines', { minimum: 1, maximum: 1000, default: 200 }),
          ...optional({
            after: text(
              'The `next_after` of the previous answer: the first lines after it. Empty: the last lines, and where to go on',
              { pattern: '^[A-Za-z0-9_-]{0,1024}$' },
            ),
          }),
        }),
        response: { 200: Logs },
      },
    },
    async (request) => {
      const { tail, after } = request.query;
      const of = [platform, callerOf(request), request.params.id] as const;
      return after === undefined ? { lines: [...(await readLogs(...of, tail))] } : readLogsAfter(...of, after, tail);
    },
  );

  app.get(
    '/v1/instances/:id/events',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'listInstanceEvents',
        summary: 'List the events of an instance, newest first',
        description: 'Returns the last 500 events; with `limit` or `cursor`, also older ones.',
        params: idOf('instance'),
        querystring: PageQuery,
        response: { 200: listOrPage(Event) },
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
