import { Type } from 'typebox';
import { invalidField } from '../../domain/refusal.js';
import {
  createEnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
  type EnrollmentTokenDetails,
} from '../../services/hosts/enrollment.js';
import {
  cordon,
  getMachine,
  listMachines,
  setMaintenance,
  uncordon,
  waiveDiskQuota,
  type MachineDetails,
} from '../../services/hosts/machines.js';
import { revokeCredentials } from '../../services/hosts/credentials.js';
import { declareLost, removeMachine } from '../../services/hosts/machine-loss.js';
import { allOffers, createOffer, repriceOffer, withdrawOffer } from '../../services/catalogue/offers.js';
import { OPERATOR, accountOf } from '../policy.js';
import { Timestamp, Uuid, body, iso, isoOrNull, nullable, optional } from '../schemas.js';
import { Offer, heldMs, offerView } from './offers.js';
import { IdParams, NoContent, PageQuery, page, viewPage, type Routes } from './routes.js';

const Token = Type.Object(
  {
    id: Uuid,
    max_uses: Type.Integer(),
    uses: Type.Integer(),
    created_at: Timestamp,
    expires_at: Timestamp,
    revoked_at: nullable(Timestamp),
    machine_id: nullable(Uuid),
  },
  { title: 'EnrollmentToken' },
);

const Machine = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    region: Type.String(),
    public_address: Type.String(),
    cpu_model: Type.String(),
    cpu_cores: Type.Integer(),
    memory_mb: Type.Integer(),
    disk_gb: Type.Integer(),
    disk_available_gb: Type.Integer(),
    disk_quota: Type.String(),
    disk_quota_waived: Type.Boolean(),
    driver_version: nullable(Type.String()),
    cuda_version: nullable(Type.String()),
    agent_version: nullable(Type.String()),
    connected: Type.Boolean(),
    obstacle: nullable(Type.String({ description: 'Why the host takes nothing new, in its own words' })),
    cordoned: Type.Boolean(),
    lost: Type.Boolean(),
    maintenance: nullable(Type.Object({ starts_at: Timestamp, ends_at: Timestamp })),
    enrolled_at: Timestamp,
    last_seen_at: nullable(Timestamp),
    gpus: Type.Array(
      Type.Object({
        uuid: Type.String(),
        model: Type.String(),
        memory_mb: Type.Integer(),
        healthy: Type.Boolean(),
        reason: nullable(Type.String()),
        instance_id: nullable(Uuid),
        quarantine_id: nullable(Uuid),
      }),
    ),
  },
  { title: 'OperatedMachine' },
);

const prices = {
  price_per_hour_micro: Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }),
  storage_price_per_gb_hour_micro: Type.Integer({ minimum: 0, maximum: 1_000_000_000 }),
};
const holding = optional({
  release_stopped_after_hours: nullable(
    Type.Integer({
      minimum: 1,
      maximum: 8_760,
      description:
        'after so long, a stopped instance gives its GPUs back to the market and keeps its disk; null: never',
    }),
  ),
});
const OfferBody = body({
  machine_id: Uuid,
  num_gpus: Type.Integer({ minimum: 1, maximum: 64 }),
  ...prices,
  ...holding,
});
const TermsBody = body({ ...optional(prices), ...holding });
const Time = Type.String({ format: 'date-time' });

/** Operators: who may enrol a host. */
export const enrollmentTokenRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.post(
    '/v1/operator/enrollment-tokens',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        summary: 'Make a token with which hosts may enrol, or one known machine anew; shown this once',
        body: body({
          max_uses: Type.Integer({ minimum: 1, maximum: 10_000, default: 1 }),
          expires_in_hours: Type.Integer({ minimum: 1, maximum: 720, default: 24 }),
          ...optional({ machine_id: Uuid }),
        }),
        response: { 201: Type.Intersect([Token, Type.Object({ token: Type.String() })]) },
      },
    },
    (request, reply) => {
      const { token, ...row } = createEnrollmentToken(platform, accountOf(request), request.body);
      void reply.code(201);
      return { ...tokenView(row), token };
    },
  );
  app.get(
    '/v1/operator/enrollment-tokens',
    {
      config,
      schema: { summary: 'Enrolment tokens, newest first', querystring: PageQuery, response: { 200: page(Token) } },
    },
    (request) => viewPage(listEnrollmentTokens(platform, request.query), tokenView),
  );
  app.delete(
    '/v1/operator/enrollment-tokens/:id',
    { config, schema: { summary: 'Revoke an enrolment token', params: IdParams, response: { 204: NoContent } } },
    (request, reply) => {
      revokeEnrollmentToken(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

/** Operators: hosts that are let in no longer. */
export const credentialRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };
  app.delete(
    '/v1/operator/machines/:id/credentials',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        summary: 'Cut the machine off until it enrols anew with a token of its own; what runs there goes on',
        params: IdParams,
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      revokeCredentials(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

/** Operators: which hosts there are, and what becomes of them. */
export const operatorMachineRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/machines',
    { config, schema: { summary: 'Machines, newest first', querystring: PageQuery, response: { 200: page(Machine) } } },
    (request) => viewPage(listMachines(platform, request.query), machineView),
  );
  app.get(
    '/v1/operator/machines/:id',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: { summary: 'One machine with its GPUs', params: IdParams, response: { 200: Machine } },
    },
    (request) => machineView(getMachine(platform, request.params.id)),
  );

  const changed = { params: IdParams, response: { 200: Machine } };
  app.post(
    '/v1/operator/machines/:id/cordon',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: { ...changed, summary: 'Take nothing new; what runs goes on' },
    },
    (request) => machineView(cordon(platform, accountOf(request), request.params.id)),
  );
  app.post(
    '/v1/operator/machines/:id/uncordon',
    { config: { ...config, refusals: ['MACHINE_NOT_FOUND'] }, schema: { ...changed, summary: 'Back onto the market' } },
    (request) => machineView(uncordon(platform, accountOf(request), request.params.id)),
  );
  app.post(
    '/v1/operator/machines/:id/lost',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND', 'MACHINE_IN_USE'] },
      schema: { ...changed, summary: 'Declare that the machine is not coming back: what runs on it ends' },
    },
    (request) => machineView(declareLost(platform, accountOf(request), request.params.id)),
  );
  app.delete(
    '/v1/operator/machines/:id',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND', 'MACHINE_IN_USE'] },
      schema: { summary: 'Remove the machine for good', params: IdParams, response: { 204: NoContent } },
    },
    (request, reply) => {
      removeMachine(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
  app.put(
    '/v1/operator/machines/:id/maintenance',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        summary: 'Announce a window in which nothing starts',
        ...changed,
        body: body({ starts_at: Time, ends_at: Time }),
      },
    },
    (request) => {
      const [startsAt, endsAt] = [timeOf('starts_at', request.body.starts_at), timeOf('ends_at', request.body.ends_at)];
      return machineView(setMaintenance(platform, accountOf(request), request.params.id, { startsAt, endsAt }));
    },
  );
  app.delete(
    '/v1/operator/machines/:id/maintenance',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: { ...changed, summary: 'Call the maintenance window off' },
    },
    (request) => machineView(setMaintenance(platform, accountOf(request), request.params.id, null)),
  );
  app.put(
    '/v1/operator/machines/:id/disk-quota-waiver',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: { ...changed, summary: 'Offer a machine though nothing holds its renters’ disks to their size' },
    },
    (request) => machineView(waiveDiskQuota(platform, accountOf(request), request.params.id, true)),
  );
  app.delete(
    '/v1/operator/machines/:id/disk-quota-waiver',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: { ...changed, summary: 'Offer a machine only while its renters’ disks are held to their size' },
    },
    (request) => machineView(waiveDiskQuota(platform, accountOf(request), request.params.id, false)),
  );
};

/** Operators: what of the machines is on the market, and at which price. */
export const operatorOfferRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/offers',
    {
      config,
      schema: {
        summary: 'Offers in every state, newest first',
        querystring: PageQuery,
        response: { 200: page(Offer) },
      },
    },
    (request) => viewPage(allOffers(platform, request.query), offerView),
  );
  app.post(
    '/v1/operator/offers',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: { summary: 'Put GPUs of a machine on the market', body: OfferBody, response: { 201: Offer } },
    },
    (request, reply) => {
      void reply.code(201);
      const { release_stopped_after_hours: hours, ...rest } = request.body;
      return offerView(createOffer(platform, accountOf(request), { ...rest, ...heldMs(hours) }));
    },
  );
  app.delete(
    '/v1/operator/offers/:id',
    {
      config: { ...config, refusals: ['OFFER_NOT_FOUND'] },
      schema: { summary: 'Withdraw an offer; instances on it stay', params: IdParams, response: { 204: NoContent } },
    },
    (request, reply) => {
      withdrawOffer(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
  app.patch(
    '/v1/operator/offers/:id',
    {
      config: { ...config, refusals: ['OFFER_NOT_FOUND'] },
      schema: {
        summary: 'New terms for who rents from now on',
        params: IdParams,
        body: TermsBody,
        response: { 200: Offer },
      },
    },
    (request) => {
      const { release_stopped_after_hours: hours, ...prices } = request.body;
      return offerView(repriceOffer(platform, accountOf(request), request.params.id, { ...prices, ...heldMs(hours) }));
    },
  );
};

function tokenView(row: EnrollmentTokenDetails) {
  return {
    ...row,
    created_at: iso(row.created_at),
    expires_at: iso(row.expires_at),
    revoked_at: isoOrNull(row.revoked_at),
  };
}

function machineView(machine: MachineDetails) {
  return {
    ...machine,
    cordoned: machine.cordoned_at !== null,
    lost: machine.lost_at !== null,
    disk_quota_waived: machine.quota_waived_at !== null,
    maintenance: maintenanceOf(machine),
    enrolled_at: iso(machine.enrolled_at),
    last_seen_at: isoOrNull(machine.last_seen_at),
    gpus: machine.gpus.map((gpu) => ({ ...gpu, healthy: gpu.healthy === 1 })),
  };
}

/** The format lets a leap second through, which is no time that can be counted. */
function timeOf(path: string, text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw invalidField(path, 'is no time');
  return time;
}

function maintenanceOf({ maintenance_starts_at: starts, maintenance_ends_at: ends }: MachineDetails) {
  return starts === null || ends === null ? null : { starts_at: iso(starts), ends_at: iso(ends) };
}
