import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import type { OpenAPIV3_1 } from 'openapi-types';
import { STATUS_CODES } from 'node:http';
import { Type, type TSchema } from 'typebox';
import { VERSION } from '../../shared/version.js';
import { ERRORS, type ErrorCode } from './error-codes.js';
import { PUBLIC, refusalsOf } from './policy.js';

const DOCUMENT = '/v1/openapi.json';
const PAGE = '/docs';
/** The page loads nothing from elsewhere. */
const CONTENT_POLICY =
  "default-src 'self'; base-uri 'self'; object-src 'none'; frame-ancestors 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'";

/** What any request can meet. */
const ANYWHERE: readonly ErrorCode[] = ['INTERNAL', 'NOT_FOUND', 'RATE_LIMITED', 'UNAVAILABLE'];
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

/**
 * The API's document, OpenAPI 3.1, out of the very schemas that validate and serialise: routes registered after this call are
 * in it. Served as JSON, and as a page to read and to try.
 */
export async function documentApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'gpurent', version: VERSION, description: DESCRIPTION },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A session token or an API key.' },
        },
        schemas: Object.fromEntries(
          (Object.keys(ERRORS) as ErrorCode[]).map((code) => [nameOf(code), errorBody(code)]),
        ),
      },
    },
    hideUntagged: true,
    transform: ({ schema, url, route }) => ({ schema: schema.summary ? describe(schema, route) : schema, url }),
    transformObject: (document) => ('openapiObject' in document ? nameModels(document.openapiObject as Document) : {}),
  });
  await app.register(swaggerUi, { routePrefix: PAGE, staticCSP: CONTENT_POLICY, uiConfig: { validatorUrl: null } });
  app.get(DOCUMENT, { schema: { hide: true } }, () => app.swagger());
}

/** A route as the document shows it: tagged by its resource, with every refusal that it can answer. */
function describe(schema: FastifySchema, route: RouteOptions): FastifySchema {
  const { policy = PUBLIC, refusals = [] } = route.config ?? {};
  const codes = new Set<ErrorCode>([...ANYWHERE, ...refusalsOf(policy), ...refusals]);
  if (route.method !== 'GET') for (const code of WITH_BODY) codes.add(code);
  if (schema.querystring || schema.headers) codes.add('VALIDATION_FAILED');
  return {
    ...schema,
    tags: [route.url.split('/')[2] ?? 'health'],
    security: policy === PUBLIC ? [] : [{ bearer: [] }],
    ...(schema.body ? { body: asSent(schema.body) } : {}),
    ...(schema.querystring ? { querystring: asSent(schema.querystring) } : {}),
    headers: policy === PUBLIC ? schema.headers : withOrganization(schema.headers as TSchema | undefined),
    response: { ...successResponses(schema.response as Record<string, object>), ...errorResponses(codes) },
  };
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

function successResponses(responses: Record<string, object>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(responses).map(([status, schema]) => [
      status,
      { ...schema, 'x-response-description': STATUS_CODES[status] },
    ]),
  );
}

function withOrganization(headers: TSchema | undefined): TSchema {
  const properties = (headers as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
  return Type.Object({
    ...properties,
    'x-org-id': Type.Optional(Type.String({ description: 'the organization to act in; else the one joined first' })),
  });
}

function errorResponses(codes: ReadonlySet<ErrorCode>): Record<string, unknown> {
  const statuses = new Set([...codes].map((code) => ERRORS[code].status));
  return Object.fromEntries(
    [...statuses].map((status) => {
      const group = [...codes].filter((code) => ERRORS[code].status === status).sort();
      const schemas = group.map((code) => ({ $ref: `#/components/schemas/${nameOf(code)}` }));
      const description = group.join(', ');
      return [status, { description, content: { 'application/json': { schema: { anyOf: schemas } } } }];
    }),
  );
}

function nameOf(code: ErrorCode): string {
  return `error.${code}`;
}

function errorBody(code: ErrorCode): object {
  const { status, meaning, extra = {} } = ERRORS[code];
  return Type.Object(
    { code: Type.Literal(code), message: Type.String(), request_id: Type.String(), ...extra },
    { description: `${status}: ${meaning}` },
  );
}

type Document = Partial<OpenAPIV3_1.Document>;

/** Moves every schema that has a title to the document's components, where readers and generators look for it. */
function nameModels(document: Document): Document {
  const schemas: Record<string, unknown> = { ...document.components?.schemas };
  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== 'object' || node === null) return node;
    const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    const { title } = node as { title?: unknown };
    if (typeof title !== 'string' || !('type' in node)) return copy;
    schemas[title] = copy;
    return { $ref: `#/components/schemas/${title}` };
  };
  const paths = visit(document.paths) as NonNullable<OpenAPIV3_1.Document['paths']>;
  return { ...document, paths, components: { ...document.components, schemas } as OpenAPIV3_1.ComponentsObject };
}
