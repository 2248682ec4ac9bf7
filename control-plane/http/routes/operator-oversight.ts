import { Type } from 'typebox';
import { adopt } from '../../services/actions/adopt.js';
import { listAuditLog, type AuditEntry } from '../../services/system/audit.js';
import { listWorkers, type WorkerState } from '../../services/system/worker-runs.js';
import { confirmClock, getClockState, type ClockState } from '../../services/reconciler/clock.js';
import { listQuarantine, removeQuarantined, type QuarantinedWorkload } from '../../services/reconciler/quarantine.js';
import { OPERATOR, accountOf } from '../policy.js';
import {
  body,
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  list,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schemas.js';
import { DiskGb, Instance, Label, instanceView } from './instances.js';
import { idOf, NoContent, page, PageQuery, viewPage, type Routes } from './routes.js';

const Quarantined = Type.Object(
  {
    id: uuid('The id in quarantine'),
    machine_id: uuid('The machine on which it is'),
    machine_name: text('What that machine is called'),
    instance_id: uuid('The instance that the host says it is'),
    state: choice(['running', 'stopped'], 'Whether it runs'),
    gpu_uuids: list(Type.String(), 'The GPUs that it holds, by the ids that their vendor gave them'),
    disk_gb: integer('The size of its disk in GB'),
    image: nullable(text('The image that it was made from, as its machine says; null: it does not say')),
    organization_id: nullable(uuid('The organization that deployed it; null: an older release has made it')),
    organization_name: nullable(text('The name of that organization; null: this store does not have it')),
    template_id: nullable(uuid('The template that it was deployed from; null: an older release has made it')),
    template_name: nullable(text('The name of that template; null: this store does not have it')),
    offer_id: nullable(uuid('The offer that it was deployed on; null: an older release has made it')),
    label: nullable(text('What its renter had called it; null: nothing')),
    ssh_public_key: nullable(text('The key that its SSH takes; null: none, or an older release has made it')),
    found_at: timestamp('When the control plane first heard of it'),
    removal_requested_at: nullable(timestamp('When an operator had it removed; null: no operator has')),
  },
  { title: 'QuarantinedWorkload' },
);

const Entry = Type.Object(
  {
    id: integer('The number of the entry'),
    at: timestamp('When it was done'),
    actor_id: uuid('The operator who did it'),
    actor_email: text('The e-mail address of that operator'),
    action: text('What was done, in a word; more actions may come'),
    subject: text('The id of what it was done to'),
    details: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'What else there is to know, by action',
    }),
  },
  { title: 'AuditEntry' },
);

const ClockReading = Type.Object(
  {
    held: flag('Whether time-outs wait until an operator confirms that the clock is right'),
    stepped_ms: nullable(integer('By how many milliseconds the wall clock was set; null: it was not')),
    since: nullable(timestamp('When it was set; null: it was not')),
  },
  { title: 'Clock' },
);

const Worker = Type.Object(
  {
    name: text('The name of the worker, as in the log'),
    runs: integer('How often it ran since the control plane started'),
    failures: integer('How many of these runs failed'),
    failing: flag('Whether its last run failed'),
    last_run_at: nullable(timestamp('When its last run began; null: it has not run')),
    last_run_ms: nullable(Type.Number({ description: 'How many milliseconds that run took; null: it has not run' })),
    last_failure_at: nullable(timestamp('When its last failed run began; null: none failed')),
    last_failure: nullable(text('What was wrong in that run; null: none failed')),
  },
  { title: 'Worker' },
);

/** Operators: what hosts run that the store cannot explain. */
export const quarantineRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/quarantine',
    {
      config,
      schema: {
        operationId: 'listQuarantinedWorkloads',
        summary: 'List the workloads on hosts that the control plane cannot explain',
        querystring: PageQuery,
        response: { 200: page(Quarantined) },
      },
    },
    (request) => viewPage(listQuarantine(platform, request.query), quarantinedView),
  );
  app.post(
    '/v1/operator/quarantine/:id/adopt',
    {
      config: {
        ...config,
        refusals: [
          'QUARANTINE_NOT_FOUND',
          'ORGANIZATION_NOT_FOUND',
          'TEMPLATE_NOT_FOUND',
          'TEMPLATE_COMING_SOON',
          'TEMPLATE_ARCH_UNSUPPORTED',
          'TEMPLATE_REQUIRES_OWNER',
          'HOST_UNREACHABLE',
          'OFFER_NOT_FOUND',
          'CAPACITY_UNAVAILABLE',
          'INVALID_STATE',
        ],
      },
      schema: {
        operationId: 'adoptQuarantinedWorkload',
        summary: 'Make a quarantined workload the instance of an organization',
        description:
          'It is billed from now on. What is left out is as it was deployed, prices among it where no offer is named; where the workload does not say that, it has to be given.',
        params: idOf('quarantined workload'),
        body: body({
          ...optional({
            organization_id: uuid('The organization that is to have it'),
            template_id: uuid('The template of which it is shown'),
            offer_id: uuid('The offer by whose terms it is billed'),
            disk_gb: DiskGb,
            label: Label,
          }),
        }),
        response: { 201: Instance },
      },
    },
    (request, reply) => {
      const instance = adopt(platform, accountOf(request), request.params.id, request.body);
      void reply.code(201);
      return instanceView(instance);
    },
  );
  app.post(
    '/v1/operator/quarantine/:id/remove',
    {
      config: { ...config, refusals: ['QUARANTINE_NOT_FOUND'] },
      schema: {
        operationId: 'removeQuarantinedWorkload',
        summary: 'Remove a quarantined workload with its contents',
        description: 'It leaves quarantine once its host has done it.',
        params: idOf('quarantined workload'),
        response: { 202: NoContent },
      },
    },
    (request, reply) => {
      removeQuarantined(platform, accountOf(request), request.params.id);
      void reply.code(202);
      return null;
    },
  );
};

/** Operators: whether time can be trusted, whether the workers do their work, and who did what. */
export const operatorOversightRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/clock',
    {
      config,
      schema: {
        operationId: 'getClock',
        summary: 'Get whether the wall clock is trusted',
        response: { 200: ClockReading },
      },
    },
    () => clockView(getClockState(platform)),
  );
  app.post(
    '/v1/operator/clock/confirm',
    {
      config,
      schema: {
        operationId: 'confirmClock',
        summary: 'Confirm that the wall clock is right',
        description: 'Time-outs that waited for it count anew from now on.',
        response: { 200: ClockReading },
      },
    },
    (request) => clockView(confirmClock(platform, accountOf(request))),
  );
  app.get(
    '/v1/operator/workers',
    {
      config,
      schema: {
        operationId: 'listWorkers',
        summary: 'List the background workers, with how their runs went',
        description: 'Each runs about every second. One that fails is logged and runs again.',
        querystring: PageQuery,
        response: { 200: page(Worker) },
      },
    },
    (request) => viewPage(listWorkers(platform, request.query), workerView),
  );
  app.get(
    '/v1/operator/audit-log',
    {
      config,
      schema: {
        operationId: 'listAuditEntries',
        summary: 'List what operators have done, newest first',
        description: 'Returns everything, unless `limit` or `cursor` asks for a page.',
        querystring: PageQuery,
        response: { 200: page(Entry) },
      },
    },
    (request) => viewPage(listAuditLog(platform, request.query), entryView),
  );
};

function quarantinedView(row: QuarantinedWorkload) {
  return { ...row, found_at: iso(row.found_at), removal_requested_at: isoOrNull(row.removal_requested_at) };
}

function entryView(entry: AuditEntry) {
  return { ...entry, at: iso(entry.at), details: JSON.parse(entry.details) as Record<string, unknown> };
}

function workerView({ last_run_at, last_failure_at, ...state }: WorkerState) {
  return { ...state, last_run_at: isoOrNull(last_run_at), last_failure_at: isoOrNull(last_failure_at) };
}

function clockView({ since, ...state }: ClockState) {
  return { ...state, since: isoOrNull(since) };
}
