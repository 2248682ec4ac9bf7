import { Type } from 'typebox';
import {
  createEnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
  type EnrollmentTokenDetails,
} from '../../services/enrollment.js';
import { getMachine, listMachines, type MachineDetails } from '../../services/machines.js';
import { allOffers, createOffer, withdrawOffer } from '../../services/offers.js';
import { grantCredit, listOrganizations } from '../../services/organizations.js';
import { createSystemTemplate } from '../../services/templates.js';
import { OPERATOR, sessionOf } from '../policy.js';
import { Micro, Timestamp, Uuid, body, iso, isoOrNull, items, nullable } from '../schemas.js';
import { Offer, offerView } from './offers.js';
import { IdParams, NoContent, type Routes } from './routes.js';
import { EnvVariable, Template, TemplateMode, TemplatePort, templateView } from './templates.js';

const Token = Type.Object({
  id: Uuid,
  max_uses: Type.Integer(),
  uses: Type.Integer(),
  created_at: Timestamp,
  expires_at: Timestamp,
  revoked_at: nullable(Timestamp),
});

const Machine = Type.Object({
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
  driver_version: nullable(Type.String()),
  cuda_version: nullable(Type.String()),
  agent_version: nullable(Type.String()),
  connected: Type.Boolean(),
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
    }),
  ),
});

const OfferBody = body({
  machine_id: Uuid,
  num_gpus: Type.Integer({ minimum: 1, maximum: 64 }),
  price_per_hour_micro: Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }),
  storage_price_per_gb_hour_micro: Type.Integer({ minimum: 0, maximum: 1_000_000_000 }),
});

const optionalText = (maxLength: number) => Type.Union([Type.String({ maxLength }), Type.Null()], { default: null });

const TEMPLATE_LIMIT_BYTES = 2 * 1024 * 1024;

const TemplateBody = body({
  name: Type.String({ minLength: 1, maxLength: 64 }),
  description: Type.String({ maxLength: 1000, default: '' }),
  readme: optionalText(65536),
  kind: Type.Enum(['container', 'vm'], { default: 'container' }),
  mode: Type.Array(TemplateMode, { default: ['ssh'], maxItems: 2 }),
  image: Type.String({ minLength: 1, maxLength: 512 }),
  arch: Type.String({ default: 'x86_64' }),
  cuda_max: Type.Union([Type.String({ pattern: '^\\d+(\\.\\d+)*$' }), Type.Null()], { default: null }),
  ssh_user: Type.String({ pattern: '^[a-z_][a-z0-9_-]{0,31}$', default: 'root' }),
  env: Type.Array(EnvVariable, { maxItems: 100, default: [] }),
  onstart: optionalText(30_000),
  command: Type.Array(Type.String({ maxLength: 4096 }), { maxItems: 100, default: [] }),
  ports: Type.Array(TemplatePort, { maxItems: 16, default: [] }),
  coming_soon: Type.Boolean({ default: false }),
  recommended: Type.Boolean({ default: false }),
  registry: Type.Union(
    [body({ username: Type.String({ maxLength: 256 }), password: Type.String({ maxLength: 4096 }) }), Type.Null()],
    {
      default: null,
    },
  ),
});

const Organization = Type.Object({ id: Uuid, name: Type.String(), balance_micro: Micro, created_at: Timestamp });

const Credit = Type.Object({
  id: Uuid,
  organization_id: Uuid,
  amount_micro: Micro,
  balance_micro: Micro,
  reason: nullable(Type.String()),
  created_at: Timestamp,
});

export const operatorRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.post(
    '/v1/operator/enrollment-tokens',
    {
      config,
      schema: {
        body: body({
          max_uses: Type.Integer({ minimum: 1, maximum: 10_000, default: 1 }),
          expires_in_hours: Type.Integer({ minimum: 1, maximum: 720, default: 24 }),
        }),
        response: { 201: Type.Intersect([Token, Type.Object({ token: Type.String() })]) },
      },
    },
    (request, reply) => {
      const { token, ...row } = createEnrollmentToken(platform, request.body);
      void reply.code(201);
      return { ...tokenView(row), token };
    },
  );
  app.get('/v1/operator/enrollment-tokens', { config, schema: { response: { 200: items(Token) } } }, () => ({
    items: listEnrollmentTokens(platform).map(tokenView),
  }));
  app.delete(
    '/v1/operator/enrollment-tokens/:id',
    { config, schema: { params: IdParams, response: { 204: NoContent } } },
    (request, reply) => {
      revokeEnrollmentToken(platform, request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.get('/v1/operator/machines', { config, schema: { response: { 200: items(Machine) } } }, () => ({
    items: listMachines(platform).map(machineView),
  }));
  app.get(
    '/v1/operator/machines/:id',
    { config, schema: { params: IdParams, response: { 200: Machine } } },
    (request) => machineView(getMachine(platform, request.params.id)),
  );

  app.get('/v1/operator/offers', { config, schema: { response: { 200: items(Offer) } } }, () => ({
    items: allOffers(platform).map(offerView),
  }));
  app.post(
    '/v1/operator/offers',
    { config, schema: { body: OfferBody, response: { 201: Offer } } },
    (request, reply) => {
      void reply.code(201);
      return offerView(createOffer(platform, request.body));
    },
  );
  app.delete(
    '/v1/operator/offers/:id',
    { config, schema: { params: IdParams, response: { 204: NoContent } } },
    (request, reply) => {
      withdrawOffer(platform, request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/operator/templates',
    { config, bodyLimit: TEMPLATE_LIMIT_BYTES, schema: { body: TemplateBody, response: { 201: Template } } },
    (request, reply) => {
      void reply.code(201);
      return templateView(createSystemTemplate(platform, request.body));
    },
  );

  app.get('/v1/operator/organizations', { config, schema: { response: { 200: items(Organization) } } }, () => ({
    items: listOrganizations(platform).map((row) => ({ ...row, created_at: iso(row.created_at) })),
  }));
  app.post(
    '/v1/operator/organizations/:id/credits',
    {
      config,
      schema: {
        params: IdParams,
        body: body({
          amount_micro: Type.Integer({ minimum: 1, maximum: 1_000_000_000_000 }),
          reason: Type.String({ minLength: 1, maxLength: 256 }),
        }),
        response: { 201: Credit },
      },
    },
    (request, reply) => {
      const credit = grantCredit(platform, sessionOf(request), request.params.id, request.body);
      void reply.code(201);
      return { ...credit, created_at: iso(credit.created_at) };
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
    enrolled_at: iso(machine.enrolled_at),
    last_seen_at: isoOrNull(machine.last_seen_at),
    gpus: machine.gpus.map((gpu) => ({ ...gpu, healthy: gpu.healthy === 1 })),
  };
}
