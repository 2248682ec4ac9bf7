import { Type } from 'typebox';
import { GPU_RELEASES, INSTANCE_ACTIONS, INSTANCE_STATUSES } from '../../domain/instance-state.js';
import type { RefusalCode } from '../../domain/refusal.js';
import { deploy } from '../../services/actions/deploy.js';
import { destroy } from '../../services/actions/destroy.js';
import { readLogs } from '../../services/actions/logs.js';
import { getInstance, listEvents, listInstances, type InstanceDetails } from '../../services/actions/read.js';
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
import { idOf, page, pageFields, PageQuery, viewPage, type Routes } from './routes.js';
import { EnvVariable, Template, templateView } from './templates.js';

/** No fee is charged for holding GPUs. */
function holdPrice() {
  return nullable(micro('Reserved for a fee on held GPUs; no such fee is charged, so it is always null'));
}

const DeployingKey = Type.Object(
  {
    id: uuid('The id of the key'),
    name: text('What the key is called'),
    kind: kindOf(),
    prefix: text('The first 12 characters of its secret'),
    revoked: flag('Whether it was revoked since'),
  },
  { description: 'The API key that deployed it; null where a person did' },
);

export const Instance = Type.Object(
  {
    id: uuid('The id of the instance'),
    label: nullable(text('What its renter calls it')),
    status: choice(
      INSTANCE_STATUSES,
      'Where it stands; `creating`, `starting`, `stopping` and `destroying` pass by themselves',
    ),
    disk_gb: integer('The size of its disk in GB, which is billed per hour while it is `stopped`'),
    price_per_hour_micro: micro('The price of an hour of GPU time for the whole slice, as it was at the deploy'),
    storage_price_per_gb_hour_micro: micro('The price of a GB of disk for an hour, as it was at the deploy'),
    ssh_host: nullable(text('The public IP address of its machine; null until the workload is up')),
    ssh_port: nullable(integer('The port of its SSH, never 22; null until the workload is up')),
    ssh_user: text('The user to log in as'),
    ssh_ready_at: nullable(timestamp('Since when its SSH answers; null until it does')),
    jupyter_url: nullable(
      text('Its JupyterLab, with the access token as query parameter `token`; null until it answers'),
    ),
    open_url: nullable(
      text(
        "The template's open-button endpoint, with the query parameter `token` where the access proxy guards it; null until it answers",
      ),
    ),
    access_token: nullable(
      text(
        'The token of its JupyterLab and its guarded ports; null for a template that uses none, and once it is `destroyed`',
      ),
    ),
    access_replacement: nullable(
      choice(
        ['pending', 'applied', 'token_only', 'refused'],
        'How far the last replacement of token and SSH key is; `token_only`: its container keeps its key; null: none was asked for',
      ),
    ),
    error_code: nullable(
      text(
        'Why it is in `error`, such as `provision_failed` or `workload_completed`, or why its last stop or start did not land: `stop_timed_out`, `start_timed_out`, `gpus_unavailable`; otherwise null. More codes may come',
      ),
    ),
    error_message: nullable(text('What happened, in words; null where `error_code` is')),
    allowed_actions: list(
      Type.Enum([...INSTANCE_ACTIONS], { type: 'string' }),
      'What the API accepts in the present status',
    ),
    gpus_released: flag(
      'True once the GPUs of the stopped instance are back on the market; its disk stays, and a start must claim the same GPUs',
    ),
    gpu_release: nullable(
      choice(
        GPU_RELEASES,
        '`pending`: decided, and not yet confirmed by the machine; `released`; `unsupported`: the GPUs stay reserved; null: no release was decided',
      ),
    ),
    gpu_release_requested_at: nullable(timestamp('When the release was decided')),
    stop_releases_gpus: flag(
      'True while a payment dispute is open: a stop then releases the GPUs, where the machine supports it',
    ),
    releases_gpus_at: nullable(
      timestamp('When a stopped instance gives its GPUs back by the terms of its offer; null: at no set time'),
    ),
    hold_price_per_hour_micro: holdPrice(),
    stop_hold_price_per_hour_micro: holdPrice(),
    suspended_hold_price_per_hour_micro: holdPrice(),
    created_at: timestamp('When it was deployed'),
    started_at: nullable(timestamp('When its workload first ran')),
    status_changed_at: timestamp('When it came into its present status'),
    destroyed_at: nullable(timestamp('When it was destroyed')),
    spend_micro: micro('What was charged for it so far; the sum of its charges among the transactions'),
    deployed_by: text('The e-mail address of who deployed it, or the name and prefix of the team API key that did'),
    deployed_via_api_key: nullable(DeployingKey),
    offer: Type.Object({ id: uuid('The id of the offer') }, { description: 'The offer that it rents' }),
    template: meaning(Template, 'The template as it was at the deploy; `readme` and `onstart` are null'),
  },
  { title: 'Instance' },
);

/** A hundred overrides of the longest kind fit in, with each character written as two escapes. */
const DEPLOY_LIMIT_BYTES = 6 * 1024 * 1024;

export const DiskGb = integer("The size of the disk in GB, at most that of the machine's whole disk", {
  minimum: 10,
  maximum: 20000,
});
export const Label = nullable(nameOf('What to call it', 64, { minLength: 0 }));

const DeployBody = body({
  offer_id: uuid('The offer to rent; it must be `available`'),
  template_id: uuid('The template to run: of the system, public, or of the organization'),
  disk_gb: DiskGb,
  ...optional({
    label: Label,
    // Whatever names no key that may be attached is SSH_KEY_NOT_FOUND.
    ssh_key_id: nullable(
      text(
        "The SSH key to log in with: the caller's own; for a team API key that of any member. Without it there is no login",
      ),
    ),
  }),
  env_overrides: list(
    EnvVariable,
    "Merged over the template's environment, by `key`; an entry whose value is null is dropped",
    {
      maxItems: 100,
      default: [],
    },
  ),
});

const Event = Type.Object(
  {
    at: timestamp('When it happened'),
    kind: text('What happened, in a word; more kinds may come'),
    message: text('What happened, in a sentence'),
  },
  { title: 'InstanceEvent' },
);

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

/** Deploy, stop, start, destroy. */
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
          'Before a deploy, the balance must cover one hour of all that the organization has then. A refusal keeps nothing and charges nothing.',
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
          'The workload ends and its disk is kept. Poll the instance until it is `stopped`; where its host does not confirm within 30 minutes it is `running` again.',
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
        description: 'The balance must cover one hour of all that the organization has then.',
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
          '202 for the first request; 200 where the instance was `destroying` already, and the request is sent to its host once more.',
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

/** What there is, and how it goes. */
export const instanceReadingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/instances',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'listInstances',
        summary: "List the organization's instances, newest first",
        querystring: Type.Object({
          ...pageFields,
          include_destroyed: flag('Whether destroyed instances are there, too', { default: false }),
        }),
        response: { 200: page(Instance) },
      },
    },
    (request) => viewPage(listInstances(platform, callerOf(request), request.query), instanceView),
  );

  app.get(
    '/v1/instances/:id',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'getInstance',
        summary: 'Get an instance',
        params: idOf('instance'),
        response: { 200: Instance },
      },
    },
    (request) => instanceView(getInstance(platform, callerOf(request), request.params.id)),
  );

  app.get(
    '/v1/instances/:id/logs',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'getInstanceLogs',
        summary: "Get the last lines of an instance's output",
        description: 'Empty until the workload has run for the first time.',
        params: idOf('instance'),
        querystring: Type.Object({
          tail: integer('How many lines at most', { minimum: 1, maximum: 1000, default: 200 }),
        }),
        response: {
          200: Type.Object({ lines: list(Type.String(), 'Standard output and error of the workload, oldest first') }),
        },
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
        operationId: 'listInstanceEvents',
        summary: 'List what happened to an instance, newest first',
        description: 'The last 500 events; pages go back further.',
        params: idOf('instance'),
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
