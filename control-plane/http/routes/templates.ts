import { Type } from 'typebox';
import {
  createTemplate,
  deactivateTemplate,
  duplicateTemplate,
  ownOf,
  updateTemplate,
} from '../../services/catalogue/template-editing.js';
import { templatesSlice, type TemplateFilter } from '../../services/catalogue/template-list.js';
import { getTemplate, getTemplateByHash, type TemplateDetails } from '../../services/catalogue/templates.js';
import type { PageRequest } from '../../services/system/pages.js';
import { MEMBER, MEMBER_SESSION, READ, callerOf, sessionOf } from '../access/policy.js';
import {
  body,
  choice,
  flag,
  formed,
  integer,
  iso,
  isoOrNull,
  list,
  meaning,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schema/schemas.js';
import { idOf, NoContent, listOrPage, pageFields, type Routes } from './routes.js';
import { answerSlices } from './whole-list.js';

export const EnvVariable = Type.Object(
  {
    key: formed('The name of the variable', '^[^=\\u0000]+$', 'contain neither "=" nor the character NUL', {
      minLength: 1,
      maxLength: 256,
    }),
    value: nullable(
      formed(
        'The value; null in responses if it is secret, and for viewers and read-only API keys',
        '^[^\\u0000]*$',
        'not contain the character NUL',
        { maxLength: 4096 },
      ),
    ),
    secret: flag('Whether the value is secret: no response contains it', { default: false }),
  },
  { additionalProperties: false },
);

const TemplatePort = Type.Object(
  {
    port: integer('The port on which the workload listens', { minimum: 1, maximum: 65535 }),
    protocol: choice(['tcp', 'udp', 'http'], 'The protocol of the port', { default: 'http' }),
    label: nameOf('The name of the port', 64, { minLength: 0, default: '' }),
    open_button: flag("Whether the instance's `open_url` points to this port", { default: false }),
    guard: choice(
      ['proxy', 'bearer', 'none'],
      'What checks the access token: `proxy`, the access proxy of the host; `bearer`, the workload itself; `none`, nothing',
      { default: 'proxy' },
    ),
  },
  { additionalProperties: false },
);

const CUDA_MAX =
  'The newest CUDA version that the template supports: a machine with a newer one cannot run it; null: no limit';
const CUDA_MIN =
  'The oldest CUDA version that the template supports: a machine whose driver supports only older ones cannot run it; null: any';
const CUDA_VERSION = ['^\\d+(\\.\\d+)*$', 'be a version, such as 12.4', { maxLength: 32 }] as const;
const ONSTART = 'A shell script that runs at each start, before the command';
const TemplateKind = choice(['container', 'vm'], 'Whether instances are containers or virtual machines');
const TemplateMode = choice(['ssh', 'jupyter'], 'A service that runs beside the command');
const TemplateModes = list(
  TemplateMode,
  'Services that run beside the command, so that an instance stays up when its command ends',
  {
    maxItems: 2,
    uniqueItems: true,
  },
);

export const Template = Type.Object(
  {
    id: uuid('The id of the template'),
    hash_id: text('A hash of everything that the template runs; templates that run the same have the same hash'),
    name: text('The name of the template'),
    description: text('The purpose of the template, in one line'),
    readme: nullable(text('Instructions for users, in Markdown; null in lists and in instances')),
    visibility: choice(
      ['system', 'public', 'organization'],
      '`system`: made by an operator, visible to all; `public`: made by an organization, visible to all; `organization`: visible only to the organization that made it',
    ),
    publisher: nullable(text('The name of the organization that published it; null for a template that is not public')),
    ...optional({
      is_own: flag('Whether the organization of the caller has made it; absent in instances and for operators'),
    }),
    kind: TemplateKind,
    mode: TemplateModes,
    image: text('The container image; for the kind `vm`, an image that contains a disk'),
    arch: text('The processor architecture that the image needs; every host is x86_64'),
    cuda_max: nullable(text(CUDA_MAX)),
    cuda_min: nullable(text(CUDA_MIN)),
    ssh_user: text('The user to log in as'),
    env: list(EnvVariable, 'The environment variables'),
    onstart: nullable(text(`${ONSTART}; null in lists and in instances`)),
    command: list(Type.String(), 'The command that instances run; empty: the command of the image'),
    ports: list(TemplatePort, 'The ports that instances open'),
    uses_access_token: flag('Whether instances have an access token'),
    coming_soon: flag('Whether the template is announced but cannot be deployed yet'),
    recommended: flag('Whether the template is listed under the tab `recommended`'),
    registry_private: flag(
      'Whether the registry requires a password, so that only the owner of the template can deploy it',
    ),
    deactivated_at: nullable(timestamp('When the template was deactivated; null: it is active')),
    created_at: timestamp('When the template was created'),
  },
  { title: 'Template' },
);

/** The largest request body: the longest template fits, even if each character is written as two JSON escapes. */
export const TEMPLATE_LIMIT_BYTES = 7 * 1024 * 1024;

const RegistryBody = body({
  username: text('The user name', { maxLength: 256 }),
  password: text('The password or token', { maxLength: 4096 }),
});

export const requiredTemplateFields = {
  name: nameOf('The name of the template', 64),
  image: text('The container image; for the kind `vm`, an image that contains a disk', {
    minLength: 1,
    maxLength: 512,
  }),
};

export const optionalTemplateFields = {
  description: text('The purpose of the template, in one line', { maxLength: 1000 }),
  readme: nullable(text('Instructions for users, in Markdown', { maxLength: 65_536 })),
  kind: TemplateKind,
  mode: TemplateModes,
  arch: text('The processor architecture that the image needs', { maxLength: 32 }),
  cuda_max: nullable(formed(CUDA_MAX, ...CUDA_VERSION)),
  cuda_min: nullable(formed(CUDA_MIN, ...CUDA_VERSION)),
  ssh_user: formed(
    'The user to log in as',
    '^[a-z_][a-z0-9_-]{0,31}$',
    'be a name of a Unix user: at most 32 small letters, digits, "_" and "-", beginning with a letter or "_"',
  ),
  env: list(EnvVariable, 'The environment variables', { maxItems: 100 }),
  onstart: nullable(text(ONSTART, { maxLength: 30_000 })),
  command: list(Type.String({ maxLength: 4096 }), 'The command that instances run; empty: the command of the image', {
    maxItems: 100,
  }),
  ports: list(TemplatePort, 'The ports that instances open', { maxItems: 16 }),
  registry: nullable(
    meaning(RegistryBody, 'The credentials for the registry of the image; no response contains them; null: none'),
  ),
};

const TemplateBody = body({
  ...requiredTemplateFields,
  ...optional(optionalTemplateFields),
  ...optional({
    visibility: choice(['organization', 'public'], 'Who can see the template: only the organization, or all users'),
  }),
});
const TemplatePatch = Type.Partial(TemplateBody, { additionalProperties: false });

const TemplateQuery = Type.Object({
  ...pageFields,
  ...optional({
    tab: choice(
      ['recommended', 'system', 'public', 'organization', 'own'],
      'Only templates under this tab. `organization`: those that only the organization sees; `own`: also those that it has published',
    ),
    mode: meaning(TemplateMode, 'Only templates with this mode'),
    words: text('Only templates that have all of these words in name, description or image, in upper or lower case', {
      maxLength: 200,
    }),
  }),
});

export const templateRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/templates',
    {
      config: { policy: READ },
      schema: {
        operationId: 'listTemplates',
        summary: 'List the templates that the organization can see, by name',
        querystring: TemplateQuery,
        response: { 200: listOrPage(Template) },
      },
    },
    (request, reply) =>
      answerSlices(
        reply,
        request.query,
        (query: TemplateFilter & PageRequest) => templatesSlice(platform, callerOf(request), query),
        templateView,
      ),
  );

  app.get(
    '/v1/templates/:id',
    {
      config: { policy: READ, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'getTemplate',
        summary: 'Get a template with its readme and start script',
        params: idOf('template'),
        response: { 200: Template },
      },
    },
    (request) => templateView(getTemplate(platform, callerOf(request), request.params.id)),
  );

  app.get(
    '/v1/templates/by-hash/:hash_id',
    {
      config: { policy: READ, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'getTemplateByHash',
        summary: 'Get a template by its hash',
        params: Type.Object({ hash_id: text('The `hash_id` of the template') }),
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
      schema: {
        operationId: 'createTemplate',
        summary: 'Create a template of the organization',
        body: TemplateBody,
        response: { 201: Template },
      },
    },
    (request, reply) => {
      void reply.code(201);
      return ownView(createTemplate(platform, ownOf(sessionOf(request)), request.body));
    },
  );

  app.patch(
    '/v1/templates/:id',
    {
      bodyLimit: TEMPLATE_LIMIT_BYTES,
      config: { policy: MEMBER_SESSION, refusals: ['TEMPLATE_NOT_FOUND', 'LIMIT_REACHED'] },
      schema: {
        operationId: 'updateTemplate',
        summary: "Change one of the organization's templates",
        description:
          'Omitted fields stay unchanged. Existing instances keep the template as it was when they were deployed.',
        params: idOf('template'),
        body: TemplatePatch,
        response: { 200: Template },
      },
    },
    (request) => ownView(updateTemplate(platform, ownOf(sessionOf(request)), request.params.id, request.body)),
  );

  app.delete(
    '/v1/templates/:id',
    {
      config: { policy: MEMBER_SESSION, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'deactivateTemplate',
        summary: "Deactivate one of the organization's templates",
        params: idOf('template'),
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
      schema: {
        operationId: 'duplicateTemplate',
        summary: 'Copy a template into the organization',
        params: idOf('template'),
        response: { 201: Template },
      },
    },
    (request, reply) => {
      void reply.code(201);
      return ownView(duplicateTemplate(platform, callerOf(request), request.params.id));
    },
  );
};

export function templateView(template: TemplateDetails) {
  // Snapshots in instances that were deployed before this field existed lack it.
  const { publisher = null } = template as Partial<TemplateDetails>;
  const times = { created_at: iso(template.created_at), deactivated_at: isoOrNull(template.deactivated_at) };
  return { ...template, publisher, ...times };
}

function ownView(template: TemplateDetails) {
  return templateView({ ...template, is_own: true });
}
