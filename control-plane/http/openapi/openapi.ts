import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { manifest } from '../../../shared/version.js';
import type { App } from '../../services/parts/parts.js';
import { SESSION_COOKIE } from '../access/cookies.js';
import { describeDeprecation } from '../schema/deprecations.js';
import type { ErrorCode } from '../errors/error-codes.js';
import { nameModels, type Document } from './openapi-models.js';
import { errorResponses, errorSchemas, shareResponses, successResponses } from './openapi-responses.js';
import { PUBLIC, refusalsOf, type Policy } from '../access/policy.js';
import { plainText, sendBody } from '../answers/remembered-bodies.js';
import { text } from '../schema/schemas.js';
import { mayBeEmpty } from '../schema/validation.js';

const DOCUMENT = '/v1/openapi.json';
const PAGE = '/docs';
/** Allows the page to load only files of this server. */
const CONTENT_POLICY =
  "default-src 'self'; base-uri 'self'; object-src 'none'; frame-ancestors 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'";

/** The errors that every route can answer. */
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

Requests and responses are JSON. Times are ISO 8601 in UTC with milliseconds; fields that end in \`_micro\` are integers in
micro-dollars. Every response has \`X-Request-Id\`. Every error body is one of the schemas whose names begin with
\`error.\`.`;

/** The tags, by the first segment of a path after `/v1`. */
const TAGS: Readonly<Record<string, string>> = {
  auth: 'Accounts, sessions and passwords',
  me: 'The signed-in user',
  orgs: 'Organizations, their members and their invitations',
  invites: 'Invitations, for invited users',
  'api-keys': 'API keys: credentials for scripts',
  'ssh-keys': 'SSH keys for logging in to instances',
  catalog: 'GPU models and how many of each exist',
  offers: 'Offers that can be rented',
  templates: 'Templates that can be deployed',
  instances: 'Rented offers that run a template',
  metrics: 'Metrics for Prometheus',
  'audit-log': 'Who has done what in the organization',
  events: 'What has happened: pages and streams of events',
  billing: 'Balance, payments and charges',
  'webhook-endpoints': 'Where the events of an organization are delivered',
  'webhook-deliveries': 'Deliveries to webhook endpoints',
  mail: 'Mails, for people who want no more of them',
  webhooks: 'Events of payment providers',
  operator: 'For operators: machines, offers, organizations',
  health: 'The health of the control plane',
};

/**
 * Serves the OpenAPI 3.1 document as JSON and as an interactive page. It is generated from the schemas that validate requests and
 * serialise responses. `abuse` is where abuse is to be reported. Only routes that are registered after this call are in it.
 */
export async function documentApi(app: FastifyInstance, abuse: App['abuse']): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'gpurent',
        version: manifest.version,
        description: DESCRIPTION,
        contact: { name: 'The operator of this marketplace', ...abuse },
        license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'The control plane that serves this document' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A session token or an API key.' },
          cookie: {
            type: 'apiKey',
            in: 'cookie',
            name: SESSION_COOKIE,
            description:
              'A session token, set by the page /sign-in. It counts only in requests without `Authorization` that a page of the control plane sends; those that change something also need the header `X-Same-Origin: 1`.',
          },
        },
        schemas: errorSchemas(),
      },
    },
    hideUntagged: true,
    transform: ({ schema, url, route }) => ({ schema: schema.summary ? describe(schema, route) : schema, url }),
    transformObject: (document) =>
      'openapiObject' in document ? freeBodies(shareResponses(nameModels(document.openapiObject as Document))) : {},
  });
  // The document is megabytes long, and strangers may ask for it: it is serialized once.
  const send = ({ headers }: FastifyRequest, reply: FastifyReply) => {
    const document = app.swagger();
    return sendBody(headers, reply, document, () => plainText(document));
  };
  await app.register(swaggerUi, {
    routePrefix: PAGE,
    staticCSP: CONTENT_POLICY,
    uiConfig: { validatorUrl: null },
    uiHooks: {
      preHandler: (request, reply, done) => {
        if (request.routeOptions.url === `${PAGE}/json`) send(request, reply);
        else done();
      },
    },
  });
  app.get(DOCUMENT, { schema: { hide: true } }, (request, reply) => send(request, reply));
}

/** Marks the body of a POST or DELETE as optional if none of its fields is required. */
function freeBodies(document: Document): Document {
  const paths = Object.values(document.paths ?? {}) as Partial<Record<string, { requestBody?: RequestBody }>>[];
  for (const { requestBody } of paths.flatMap((path) => [path['post'] ?? {}, path['delete'] ?? {}]))
    if (mayBeEmpty(requestBody?.content['application/json']?.schema)) delete requestBody?.required;
  return document;
}

interface RequestBody {
  required?: boolean;
  content: Record<string, { schema: unknown }>;
}

/** Returns a route as the document shows it: with its tag, its allowed callers, and every error that it can answer. */
function describe(schema: FastifySchema, route: RouteOptions): FastifySchema {
  const { policy = PUBLIC, deprecated } = route.config ?? {};
  const description = [schema.description, callersOf(policy)].filter(Boolean).join(' ');
  return {
    ...schema,
    description,
    ...(deprecated && describeDeprecation(deprecated, description)),
    tags: [route.url.split('/')[2]?.replace(/\.csv$/, '') ?? 'health'],
    security: policy === PUBLIC ? [] : [{ bearer: [] }, { cookie: [] }],
    ...(schema.body ? { body: asSent(schema.body) } : {}),
    ...(schema.querystring ? { querystring: asSent(schema.querystring) } : {}),
    headers: headersOf(schema, route),
    response: {
      ...successResponses(schema.response as Record<string, object>),
      ...(route.config?.hasETag ? successResponses({ 304: Type.Null() }) : {}),
      ...errorResponses(errorsOf(schema, route)),
    },
  };
}

function errorsOf(schema: FastifySchema, route: RouteOptions): ReadonlySet<ErrorCode> {
  const { policy = PUBLIC, refusals = [], proof } = route.config ?? {};
  const codes = new Set<ErrorCode>([...ANYWHERE, ...refusalsOf(policy), ...refusals]);
  if (proof) codes.add('PROOF_REQUIRED');
  // A 405 would reveal which operator routes exist, so these routes never answer it.
  if (policy === PUBLIC || policy.right !== 'operate') codes.add('METHOD_NOT_ALLOWED');
  if (route.method !== 'GET') for (const code of WITH_BODY) codes.add(code);
  if (schema.querystring || schema.headers) codes.add('VALIDATION_FAILED');
  return codes;
}

/** Who may call a route, by the right that it needs and whether it is for API keys. */
const WHO: Readonly<Record<Policy['right'], (forKeys: boolean) => string>> = {
  operate: () => 'For operators. Every other caller gets a 404.',
  own: () => 'For sessions.',
  administer: () => 'For sessions of admins.',
  change_money: () => 'For sessions of admins and of the role `billing`.',
  change: (forKeys) => `For sessions of admins and members${forKeys ? ', and API keys that are not read-only' : ''}.`,
  read: () => 'For sessions, except of the role `billing`, and API keys.',
  read_money: () => 'For sessions and API keys.',
};

function callersOf(policy: Policy | typeof PUBLIC): string {
  if (policy === PUBLIC) return 'Needs no credential.';
  return WHO[policy.right](policy.apiKey === 'allowed');
}

/** Returns a schema as the client sees it: fields with a default are optional. */
function asSent(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(asSent);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, asSent(value)]));
  const { properties, required } = schema as { properties?: Record<string, object>; required?: unknown };
  if (!properties || !Array.isArray(required)) return copy;
  return { ...copy, required: required.filter((name: string) => !('default' in (properties[name] ?? {}))) };
}

function headersOf({ headers }: FastifySchema, { config = {} }: RouteOptions): unknown {
  const properties = (headers as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
  if (config.policy === undefined || config.policy === PUBLIC) return headers;
  const organization = text(
    'The id of the organization to act in. Default: the organization that the user joined first',
  );
  const known = text('The `ETag` of the last answer; if it is still the same, the answer is 304 without a body');
  return Type.Object({
    ...properties,
    'x-org-id': Type.Optional(organization),
    ...(config.hasETag ? { 'if-none-match': Type.Optional(known) } : {}),
  });
}
