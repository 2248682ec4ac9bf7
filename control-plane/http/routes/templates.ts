import { Type } from 'typebox';
import { getTemplate, getTemplateByHash, listTemplates, type TemplateDetails } from '../../services/templates.js';
import { MEMBER, callerOf } from '../policy.js';
import { Timestamp, Uuid, iso, isoOrNull, items, nullable } from '../schemas.js';
import { IdParams, type Routes } from './routes.js';

export const EnvVariable = Type.Object(
  {
    key: Type.String({ minLength: 1, maxLength: 256, pattern: '^[^=\\u0000]+$' }),
    value: nullable(Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' })),
    secret: Type.Boolean({ default: false }),
  },
  { additionalProperties: false },
);

export const TemplatePort = Type.Object(
  {
    port: Type.Integer({ minimum: 1, maximum: 65535 }),
    protocol: Type.Enum(['tcp', 'udp', 'http'], { default: 'http' }),
    label: Type.String({ maxLength: 64, default: '' }),
    open_button: Type.Boolean({ default: false }),
    guard: Type.Enum(['proxy', 'bearer', 'none'], { default: 'proxy' }),
  },
  { additionalProperties: false },
);

export const TemplateKind = Type.Enum(['container', 'vm']);
export const TemplateMode = Type.Enum(['ssh', 'jupyter']);

export const Template = Type.Object({
  id: Uuid,
  hash_id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  readme: nullable(Type.String()),
  visibility: Type.Enum(['system', 'public', 'organization']),
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
});

const TemplateQuery = Type.Partial(
  Type.Object({ tab: Type.Enum(['recommended', 'system', 'public', 'organization']), mode: TemplateMode }),
);

export const templateRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/templates',
    { config: { policy: MEMBER }, schema: { querystring: TemplateQuery, response: { 200: items(Template) } } },
    (request) => ({ items: listTemplates(platform, callerOf(request), request.query).map(templateView) }),
  );

  app.get(
    '/v1/templates/:id',
    { config: { policy: MEMBER }, schema: { params: IdParams, response: { 200: Template } } },
    (request) => templateView(getTemplate(platform, callerOf(request), request.params.id)),
  );

  app.get(
    '/v1/templates/by-hash/:hash_id',
    {
      config: { policy: MEMBER },
      schema: { params: Type.Object({ hash_id: Type.String() }), response: { 200: Template } },
    },
    (request) => templateView(getTemplateByHash(platform, callerOf(request), request.params.hash_id)),
  );
};

export function templateView(template: TemplateDetails) {
  return { ...template, created_at: iso(template.created_at), deactivated_at: isoOrNull(template.deactivated_at) };
}
