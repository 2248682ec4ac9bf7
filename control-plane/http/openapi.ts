import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { VERSION } from '../../shared/version.js';
import type { ErrorCode } from './error-codes.js';
import { nameModels, type Document } from './openapi-models.js';
import { errorResponses, errorSchemas, shareResponses, successResponses } from './openapi-responses.js';
import { PUBLIC, refusalsOf, type Policy } from './policy.js';
import { text } from './schemas.js';
import { mayBeEmpty } from './validation.js';

const DOCUMENT = '/v1/openapi.json';
const PAGE = '/docs';
/** The page loads nothing from elsewhere. */
const CONTENT_POLICY =
  "default-src 'self'; base-uri 'self'; object-src 'none'; frame-ancestors 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'";

/** What any request can meet. */
const ANYWHERE: readonly ErrorCode[] = [
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'MALFORMED_REQUEST',
  'NOT_FOUND',
  'RATE_LIMITED',
  'REQUEST_TIMEOUT',
  'UNAVAILABLE',
];
const WITH_BODY: readonly ErrorCode[] = [
  'MALFORMED_JSON',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'VALIDATION_FAILED',
];

const DESCRIPTION = `Rents slices of GPU machines by the second.

Requests and answers are JSON. Times are ISO 8601 in UTC with milliseconds; fields that end in \`_micro\` are integers in
micro-dollars. Every answer carries \`X-Request-Id\`; every error is one of those under Schemas whose names begin with
\`error.\`.`;

/** A group of routes for each first part of a path. */
const TAGS: Readonly<Record<string, string>> = {
  auth: 'Accounts, sessions and passwords',
  me: 'The signed-in user',
  orgs: 'Organizations, their members and their invitations',
  invites: 'Invitations, for those who are invited',
  'api-keys': 'API keys: credentials for scripts',
  'ssh-keys': 'SSH keys, with which to log in to instances',
  catalog: 'How much of which GPU model there is',
  offers: 'What can be rented',
  templates: 'What can be run',
  instances: 'Rented offers that run a template',
  billing: 'What was paid and what was charged',
  webhooks: 'What payment providers tell',
  operator: 'For operators: machines, offers, organizations',
  health: 'Whether the control plane is well',
};

/**
 * Serves the OpenAPI document, 3.1, as JSON and as a page to read and to try. It is made of the very schemas that validate and
 * serialise: routes that are registered after this call are in it.
 */
export async function documentApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'gpurent',
        version: VERSION,
        description: DESCRIPTION,
        contact: { name: 'The operator of this marketplace' },
        license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'The control plane that serves this document' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A session token or an API key.' },
        },
        schemas: errorSchemas(),
      },
    },
    hideUntagged: true,
    transform: ({ schema, url, route }) => ({ schema: schema.summary ? describe(schema, route) : schema, url }),
    transformObject: (document) =>
      'openapiObject' in document ? freeBodies(shareResponses(nameModels(document.openapiObject as Document))) : {},
  });
  await app.register(swaggerUi, { routePrefix: PAGE, staticCSP: CONTENT_POLICY, uiConfig: { validatorUrl: null } });
  app.get(DOCUMENT, { schema: { hide: true } }, () => app.swagger());
}

/** A POST whose body has no field that must be given may come without one. */
function freeBodies(document: Document): Document {
  for (const path of Object.values(document.paths ?? {}) as { post?: { requestBody?: RequestBody } }[]) {
    const { requestBody } = path.post ?? {};
    if (mayBeEmpty(requestBody?.content['application/json']?.schema)) delete requestBody?.required;
  }
  return document;
}

interface RequestBody {
  required?: boolean;
  content: Record<string, { schema: unknown }>;
}

/** A route as the document shows it: tagged by its resource, with who may call it, and with every refusal that it can answer. */
function describe(schema: FastifySchema, route: RouteOptions): FastifySchema {
  const { policy = PUBLIC } = route.config ?? {};
  return {
    ...schema,
    description: [schema.description, callersOf(policy)].filter(Boolean).join(' '),
    tags: [route.url.split('/')[2] ?? 'health'],
    security: policy === PUBLIC ? [] : [{ bearer: [] }],
    ...(schema.body ? { body: asSent(schema.body) } : {}),
    ...(schema.querystring ? { querystring: asSent(schema.querystring) } : {}),
    headers: policy === PUBLIC ? schema.headers : withOrganization(schema.headers as TSchema | undefined),
    response: {
      ...successResponses(schema.response as Record<string, object>),
      ...errorResponses(errorsOf(schema, route)),
    },
  };
}

function errorsOf(schema: FastifySchema, route: RouteOptions): ReadonlySet<ErrorCode> {
  const { policy = PUBLIC, refusals = [] } = route.config ?? {};
  const codes = new Set<ErrorCode>([...ANYWHERE, ...refusalsOf(policy), ...refusals]);
  // Who is no operator is not told which addresses there are, so nobody is.
  if (policy === PUBLIC || policy.session !== 'operator') codes.add('METHOD_NOT_ALLOWED');
  if (route.method !== 'GET') for (const code of WITH_BODY) codes.add(code);
  if (schema.querystring || schema.headers) codes.add('VALIDATION_FAILED');
  return codes;
}

function callersOf(policy: Policy | typeof PUBLIC): string {
  if (policy === PUBLIC) return 'Takes no credential.';
  if (policy.session === 'operator') return 'For operators; for every other caller it does not exist.';
  if (policy.session === 'admin') return 'For the session of an admin.';
  return policy.apiKey === 'allowed' ? 'For sessions and API keys.' : 'For sessions.';
}

/** A request as its sender sees it: what has a default may be left out. */
function asSent(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(asSent);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, asSent(value)]));
  const { properties, required } = schema as { properties?: Record<string, object>; required?: unknown };
  if (!properties || !Array.isArray(required)) return copy;
  return { ...copy, required: required.filter((name: string) => !('default' in (properties[name] ?? {}))) };
}

function withOrganization(headers: TSchema | undefined): TSchema {
  const properties = (headers as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
  const organization = text('The id of the organization to act in; without it, the one joined first');
  return Type.Object({ ...properties, 'x-org-id': Type.Optional(organization) });
}
