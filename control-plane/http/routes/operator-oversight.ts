import { Type } from 'typebox';
import { adopt } from '../../services/hosts/adoption.js';
import { listAuditLog, type AuditEntry } from '../../services/audit.js';
import { confirmClock, getClockState, type ClockState } from '../../services/clock.js';
import { listQuarantine, removeQuarantined, type QuarantinedWorkload } from '../../services/hosts/quarantine.js';
import { OPERATOR, accountOf } from '../policy.js';
import { Timestamp, Uuid, body, iso, isoOrNull, nullable } from '../schemas.js';
import { DiskGb, Instance, Label, instanceView } from './instances.js';
import { IdParams, NoContent, PageQuery, page, viewPage, type Routes } from './routes.js';

const Quarantined = Type.Object(
  {
    id: Uuid,
    machine_id: Uuid,
    machine_name: Type.String(),
    instance_id: Uuid,
    state: Type.Enum(['running', 'stopped']),
    gpu_uuids: Type.Array(Type.String()),
    disk_gb: Type.Integer(),
    found_at: Timestamp,
    removal_requested_at: nullable(Timestamp),
  },
  { title: 'QuarantinedWorkload' },
);

const Entry = Type.Object(
  {
    id: Type.Integer(),
    at: Timestamp,
    actor_id: Uuid,
    actor_email: Type.String(),
    action: Type.String(),
    subject: Type.String({ description: 'the id of what it was done to' }),
    details: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
  },
  { title: 'AuditEntry' },
);

const ClockReading = Type.Object(
  {
    held: Type.Boolean({ description: 'time-outs wait until an operator confirms that the clock is right' }),
    stepped_ms: nullable(Type.Integer({ description: 'by how much the wall clock was set' })),
    since: nullable(Timestamp),
  },
  { title: 'Clock' },
);

/** Operators: what hosts run that the store cannot explain, whether time can be trusted, and who did what. */
export const operatorOversightRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/quarantine',
    {
      config,
      schema: {
        summary: 'Workloads that the store cannot explain',
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
        summary: 'Make it the instance of an organization, billed from now on',
        params: IdParams,
        body: body({ organization_id: Uuid, template_id: Uuid, offer_id: Uuid, disk_gb: DiskGb, label: Label }),
        response: { 201: Instance },
      },
    },
    (request, reply) => {
      const adoption = { ...request.body, label: request.body.label ?? null };
      const instance = adopt(platform, accountOf(request), request.params.id, adoption);
      void reply.code(201);
      return instanceView(instance);
    },
  );
  app.post(
    '/v1/operator/quarantine/:id/remove',
    {
      config: { ...config, refusals: ['QUARANTINE_NOT_FOUND'] },
      schema: {
        summary: 'Remove container and contents; it leaves quarantine once the host has done it',
        params: IdParams,
        response: { 202: NoContent },
      },
    },
    (request, reply) => {
      removeQuarantined(platform, accountOf(request), request.params.id);
      void reply.code(202);
      return null;
    },
  );

  app.get(
    '/v1/operator/clock',
    { config, schema: { summary: 'Whether the wall clock is believed', response: { 200: ClockReading } } },
    () => clockView(getClockState(platform)),
  );
  app.post(
    '/v1/operator/clock/confirm',
    {
      config,
      schema: { summary: 'The wall clock is right: time-outs count anew from now on', response: { 200: ClockReading } },
    },
    (request) => clockView(confirmClock(platform, accountOf(request))),
  );
  app.get(
    '/v1/operator/audit-log',
    {
      config,
      schema: {
        summary: 'Who did what with the powers of an operator, newest first',
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

function clockView({ since, ...state }: ClockState) {
  return { ...state, since: isoOrNull(since) };
}
