import { Type } from 'typebox';
import { adopt } from '../../../services/actions/adopt.js';
import { OPERATOR_ACTS } from '../../../domain/operator-act.js';
import { listAuditLog, type AuditEntry } from '../../../services/system/audit.js';
import { listWorkers, type WorkerState } from '../../../services/system/worker-runs.js';
import { confirmClock, getClockState, type ClockState } from '../../../services/reconciler/clock.js';
import {
  listQuarantine,
  removeQuarantined,
  type QuarantinedWorkload,
} from '../../../services/reconciler/quarantine.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
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
} from '../../schema/schemas.js';
import { Instance, instanceView } from '../instances/instance-view.js';
import { Label } from '../instances/instance-settings.js';
import { DiskGb } from '../instances/instances.js';
import { Period, withPeriod } from '../period.js';
import { idOf, NoContent, listOrPage, page, pageFields, PageQuery, viewPage, type Routes } from '../routes.js';

const Quarantined = Type.Object(
  {
    id: uuid('The id of the workload in quarantine'),
    machine_id: uuid('The id of its machine'),
    machine_name: text('The name of that machine'),
    instance_id: uuid('The instance id that the host reports for the workload'),
    state: choice(['running', 'stopped'], 'Whether the workload is running'),
    gpu_uuids: list(Type.String(), 'The vendor ids of the GPUs that it holds'),
    disk_gb: integer('The size of its disk in GB'),
    image: nullable(text('The image that the host reports; null: it reports none')),
    organization_id: nullable(
      uuid('The organization that deployed it; null: unknown, because an older release created it'),
    ),
    organization_name: nullable(text('The name of that organization; null: not in this database')),
    template_id: nullable(
      uuid('The template that it was deployed from; null: unknown, because an older release created it'),
    ),
    template_name: nullable(
      text('The name of that template; null: not in this database, or of no use to the organization any more'),
    ),
    offer_id: nullable(uuid('The offer that it was deployed on; null: unknown, because an older release created it')),
    label: nullable(text('The label that its renter gave it; null: none')),
    ssh_public_key: nullable(
      text('The public key that its SSH server accepts; null: none, or unknown because an older release created it'),
    ),
    found_at: timestamp('When its host first reported it'),
    removal_requested_at: nullable(timestamp('When an operator requested its removal; null: no operator has')),
  },
  { title: 'QuarantinedWorkload' },
);

const Entry = Type.Object(
  {
    id: integer('The number of the entry'),
    at: timestamp('When the operator did it'),
    actor_id: uuid('The operator who did it'),
    actor_email: text('The e-mail address of that operator'),
    action: text('The action, such as `quarantine.adopt`; later releases can add more'),
    subject: text('The id of the object of the action'),
    details: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'Details, which depend on the action',
    }),
  },
  { title: 'AuditEntry' },
);

const AuditQuery = Type.Object({
  ...pageFields,
  ...Period,
  ...optional({
    actor_email: text('Only what the operator with this e-mail address has done', { maxLength: 254 }),
    action: choice(OPERATOR_ACTS, 'Only this action'),
    subject: text('Only what was done to the object with this id', { maxLength: 64 }),
  }),
});

const ClockReading = Type.Object(
  {
    held: flag('Whether time-outs are paused until an operator confirms that the clock is right'),
    stepped_ms: nullable(integer('By how many milliseconds the wall clock was changed; null: it was not changed')),
    since: nullable(timestamp('When the wall clock was changed; null: it was not changed')),
  },
  { title: 'Clock' },
);

const Worker = Type.Object(
  {
    name: text('The name of the worker, as in the log'),
    runs: integer('The number of its runs since the control plane started'),
    failures: integer('The number of these runs that failed'),
    failing: flag('Whether its last run failed'),
    last_run_at: nullable(timestamp('When its last run began; null: it has not run')),
    last_run_ms: nullable(
      Type.Number({ description: 'The duration of that run in milliseconds; null: it has not run' }),
    ),
    last_failure_at: nullable(timestamp('When its last failed run began; null: none failed')),
    last_failure: nullable(text('The error of that run; null: none failed')),
  },
  { title: 'Worker' },
);

/** Routes for operators: workloads on hosts that the database does not know. */
export const quarantineRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/quarantine',
    {
      config,
      schema: {
        operationId: 'listQuarantinedWorkloads',
        summary: 'List the workloads on hosts that the database does not know',
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
        proof: true,
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
        summary: 'Turn a workload in quarantine into an instance of an organization',
        description:
          'The organization is charged for it from now on. Omitted fields, and without `offer_id` also the prices, are those of the original deploy. Fields that the workload does not record must be given.',
        params: idOf('quarantined workload'),
        body: body({
          ...optional({
            organization_id: uuid('The organization that gets the instance'),
            template_id: uuid('The template that the instance shows'),
            offer_id: uuid('The offer whose terms apply to the instance'),
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
      config: { ...config, servedOnFullDisk: true, proof: true, refusals: ['QUARANTINE_NOT_FOUND'] },
      schema: {
        operationId: 'removeQuarantinedWorkload',
        summary: 'Remove a workload in quarantine with its disk',
        description: 'The workload leaves quarantine once its host has removed it.',
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

/** Routes for operators: the clock, the background workers and the audit log. */
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
      config: { ...config, servedOnFullDisk: true, proof: true },
      schema: {
        operationId: 'confirmClock',
        summary: 'Confirm that the wall clock is right',
        description: 'Paused time-outs start again from now.',
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
        summary: 'List the background workers and the results of their runs',
        description: 'Each worker runs about every second. A failure is logged, and the worker runs again.',
        querystring: PageQuery,
        response: { 200: listOrPage(Worker) },
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
        description:
          'With two or more of `actor_email`, `action` and `subject`, a page looks at 2,000 entries at most: it can have fewer than `limit` although `next_cursor` is not null.',
        querystring: AuditQuery,
        response: { 200: page(Entry) },
      },
    },
    (request) => viewPage(listAuditLog(platform, withPeriod(request.query)), entryView),
  );
};

function quarantinedView(row: QuarantinedWorkload) {
  return { ...row, found_at: iso(row.found_at), removal_requested_at: isoOrNull(row.removal_requested_at) };
}

function entryView(entry: AuditEntry) {
  return { ...entry, at: iso(entry.at), details: JSON.parse(entry.details) as Record<string, unknown> };
}

function workerView({ last_run_at, last_failure_at, failing_since: _, ...state }: WorkerState) {
  return { ...state, last_run_at: isoOrNull(last_run_at), last_failure_at: isoOrNull(last_failure_at) };
}

function clockView({ since, ...state }: ClockState) {
  return { ...state, since: isoOrNull(since) };
}
