import { Type } from 'typebox';
import {
  createTemplate,
  deactivateTemplate,
  duplicateTemplate,
  ownOf,
  updateTemplate,
} from '../../services/catalogue/template-editing.js';
import {
  getTemplate,
  getTemplateByHash,
  listTemplates,
  type TemplateDetails,
} from '../../services/catalogue/templates.js';
import { MEMBER, MEMBER_SESSION, callerOf, sessionOf } from '../policy.js';
import { Timestamp, Uuid, body, iso, isoOrNull, nullable, optional, nameOf } from '../schemas.js';
import { IdParams, NoContent, page, pageFields, viewPage, type Routes } from './routes.js';

export const EnvVariable = Type.Object(
  {
    key: Type.String({ minLength: 1, maxLength: 256, pattern: '^[^=\\u0000]+$' }),
    value: nullable(Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' })),
    secret: Type.Boolean({ default: false }),
  },
  { additionalProperties: false },
);

const TemplatePort = Type.Object(
  {
    port: Type.Integer({ minimum: 1, maximum: 65535 }),
    protocol: Type.Enum(['tcp', 'udp', 'http'], { default: 'http' }),
    label: Type.String({ ...nameOf(64, 0), default: '' }),
    open_button: Type.Boolean({ default: false }),
    guard: Type.Enum(['proxy', 'bearer', 'none'], { default: 'proxy' }),
  },
  { additionalProperties: false },
);

const TemplateKind = Type.Enum(['container', 'vm']);
const TemplateMode = Type.Enum(['ssh', 'jupyter']);

export const Template = Type.Object(
  {
    id: Uuid,
    hash_id: Type.String(),
    name: Type.String(),
    description: Type.String(),
    readme: nullable(Type.String()),
    visibility: Type.Enum(['system', 'public', 'organization']),
    publisher: nullable(Type.String()),
    kind: TemplateKind,
    mode: Type.Array(TemplateMode),
    image: Type.String(),
    arch: Type.String(),
    cuda_max: nullable(Type.String()),
    ssh_user: Type.String(),
    env: Type.Array(EnvVariable),
    onstart: nullable(Type.String()),
    command: Type.Array(Type.String()),
    ports: Type.Array(TemplatePort),
    uses_access_token: Type.Boolean(),
    coming_soon: Type.Boolean(),
    recommended: Type.Boolean(),
    registry_private: Type.Boolean(),
    deactivated_at: nullable(Timestamp),
    created_at: Timestamp,
  },
  { title: 'Template' },
);

const text = (maxLength: number) => nullable(Type.String({ maxLength }));

/** The longest template fits in, with each character written as two escapes. */
export const TEMPLATE_LIMIT_BYTES = 7 * 1024 * 1024;

export const requiredTemplateFields = {
  name: nameOf(64),
  image: Type.String({ minLength: 1, maxLength: 512 }),
};

export const optionalTemplateFields = {
  description: Type.String({ maxLength: 1000 }),
  readme: text(65_536),
  kind: TemplateKind,
  mode: Type.Array(TemplateMode, { maxItems: 2, uniqueItems: true }),
  arch: Type.String({ maxLength: 32 }),
  cuda_max: nullable(Type.String({ pattern: '^\\d+(\\.\\d+)*$', maxLength: 32 })),
  ssh_user: Type.String({ pattern: '^[a-z_][a-z0-9_-]{0,31}$' }),
  env: Type.Array(EnvVariable, { maxItems: 100 }),
  onstart: text(30_000),
  command: Type.Array(Type.String({ maxLength: 4096 }), { maxItems: 100 }),
  ports: Type.Array(TemplatePort, { maxItems: 16 }),
  registry: nullable(body({ username: Type.String({ maxLength: 256 }), password: Type.String({ maxLength: 4096 }) })),
};

const TemplateBody = body({
  ...requiredTemplateFields,
  ...optional(optionalTemplateFields),
  ...optional({ visibility: Type.Enum(['organization', 'public']) }),
});
const TemplatePatch = Type.Partial(TemplateBody, { additionalProperties: false });

const TemplateQuery = Type.Partial(
  Type.Object({
    ...pageFields,
    tab: Type.Enum(['recommended', 'system', 'public', 'organization']),
    mode: TemplateMode,
  }),
);

export const templateRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/templates',
    {
      config: { policy: MEMBER },
      schema: {
        summary: 'The templates that the organization can see, by name',
        querystring: TemplateQuery,
        response: { 200: page(Template) },
      },
    },
    (request) => viewPage(listTemplates(platform, callerOf(request), request.query), templateView),
  );

  app.get(
    '/v1/templates/:id',
    {
      config: { policy: MEMBER, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: { summary: 'One template, with its readme and onstart', params: IdParams, response: { 200: Template } },
    },
    (request) => templateView(getTemplate(platform, callerOf(request), request.params.id)),
  );

  app.get(
    '/v1/templates/by-hash/:hash_id',
    {
      config: { policy: MEMBER, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        summary: 'A template that runs exactly this',
        params: Type.Object({ hash_id: Type.String() }),
        response: { 200: Template },
      },
    },
    (request) => templateView(getTemplateByHash(platform, callerOf(request), request.params.hash_id)),
  );
};

export const templateEditingRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/templates',
    {
      bodyLimit: TEMPLATE_LIMIT_BYTES,
      config: { policy: MEMBER_SESSION, refusals: ['LIMIT_REACHED'] },
      schema: { summary: 'Make a template of the organization', body: TemplateBody, response: { 201: Template } },
    },
    (request, reply) => {
      void reply.code(201);
      return templateView(createTemplate(platform, ownOf(sessionOf(request)), request.body));
    },
  );

  app.patch(
    '/v1/templates/:id',
    {
      bodyLimit: TEMPLATE_LIMIT_BYTES,
      config: { policy: MEMBER_SESSION, refusals: ['TEMPLATE_NOT_FOUND', 'LIMIT_REACHED'] },
      schema: {
        summary: "Change one of the organization's templates",
        params: IdParams,
        body: TemplatePatch,
        response: { 200: Template },
      },
    },
    (request) => templateView(updateTemplate(platform, ownOf(sessionOf(request)), request.params.id, request.body)),
  );

  app.delete(
    '/v1/templates/:id',
    {
      config: { policy: MEMBER_SESSION, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        summary: "Deactivate one of the organization's templates",
        params: IdParams,
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      deactivateTemplate(platform, ownOf(sessionOf(request)), request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/templates/:id/duplicate',
    {
      config: { policy: MEMBER, refusals: ['TEMPLATE_NOT_FOUND', 'LIMIT_REACHED'] },
      schema: { summary: 'Copy a template into the organization', params: IdParams, response: { 201: Template } },
    },
    (request, reply) => {
      void reply.code(201);
      return templateView(duplicateTemplate(platform, callerOf(request), request.params.id));
    },
  );
};

export function templateView(template: TemplateDetails) {
  // Snapshots of instances that are older than the field have none.
  const { publisher = null } = template as Partial<TemplateDetails>;
  const times = { created_at: iso(template.created_at), deactivated_at: isoOrNull(template.deactivated_at) };
  return { ...template, publisher, ...times };
}
