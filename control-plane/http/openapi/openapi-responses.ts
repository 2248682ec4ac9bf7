import { STATUS_CODES } from 'node:http';
import type { OpenAPIV3_1 } from 'openapi-types';
import { Type } from 'typebox';
import { ERRORS, type ErrorCode } from '../errors/error-codes.js';
import type { Document } from './openapi-models.js';
import { choice, text, uuid } from '../schema/schemas.js';

type Header = OpenAPIV3_1.HeaderObject;
type Response = OpenAPIV3_1.ResponseObject;

/** The response headers. A required one is on every response that lists it. */
const HEADERS: Readonly<Record<string, Header>> = {
  'X-Request-Id': {
    description: 'The id of the request; include it when you report a problem',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'Retry-After': {
    description: 'The number of seconds to wait before another try',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
  'WWW-Authenticate': {
    description: 'How to authenticate: `Authorization: Bearer TOKEN`',
    required: true,
    schema: { type: 'string', enum: ['Bearer'] },
  },
  Allow: {
    description: 'The methods that the address accepts, separated by commas',
    required: true,
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Changes when the body does; send it as `If-None-Match` to get 304 while it has not changed',
    schema: { type: 'string' },
  },
  'Idempotent-Replayed': {
    description: '`true` if the `Idempotency-Key` was used before; the body is what the first request created',
    schema: { type: 'string', enum: ['true'] },
  },
};
/** Those of deprecated routes: the document has them only if it has such routes. */
const DEPRECATION_HEADERS: Readonly<Record<string, Header>> = {
  Deprecation: {
    description: 'Since when the route is deprecated: `@` and seconds since 1970 (RFC 9745)',
    required: true,
    schema: { type: 'string', pattern: '^@\\d+$' },
  },
  Sunset: {
    description: 'When the route can be removed: a date of HTTP (RFC 8594)',
    required: true,
    schema: { type: 'string' },
  },
};
const HEADERS_BY_STATUS: Readonly<Record<string, string>> = {
  401: 'WWW-Authenticate',
  405: 'Allow',
  429: 'Retry-After',
  503: 'Retry-After',
};

/** Returns the schemas of all error bodies that the API has, by name. */
export function errorSchemas(): Record<string, object> {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => !ERRORS[code].onlyOnPages);
  return Object.fromEntries(codes.map((code) => [nameOf(code), errorBody(code)]));
}

function nameOf(code: ErrorCode): string {
  return `error.${code}`;
}

function errorBody(code: ErrorCode): object {
  const { status, meaning, extra = {} } = ERRORS[code];
  return Type.Object(
    {
      code: choice([code], 'The error code'),
      message: text('What is wrong, in words for people'),
      request_id: uuid('The id of the request; include it when you report a problem'),
      ...extra,
    },
    { description: `${status}: ${meaning}` },
  );
}

export function successResponses(responses: Record<string, object>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(responses).map(([status, schema]) => [
      status,
      { ...schema, 'x-response-description': STATUS_CODES[status] },
    ]),
  );
}

export function errorResponses(codes: ReadonlySet<ErrorCode>): Record<string, Response> {
  const statuses = new Set([...codes].map((code) => ERRORS[code].status));
  return Object.fromEntries(
    [...statuses].map((status) => [status, errorResponse([...codes].filter((code) => ERRORS[code].status === status))]),
  );
}

function errorResponse(codes: readonly ErrorCode[]): Response {
  const schemas = [...codes].sort().map((code) => ({ $ref: `#/components/schemas/${nameOf(code)}` }));
  const [first = {}, ...others] = schemas;
  const schema = others.length === 0 ? first : { anyOf: schemas };
  return { description: [...codes].sort().join(', '), content: { 'application/json': { schema } } };
}

/** Adds the headers to every response, and moves responses with only one error code to the components. */
export function shareResponses(document: Document): Document {
  const responses: Record<string, Response> = {};
  const operations = operationsOf(document);
  for (const operation of operations) {
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      const full = { ...(response as Response), headers: headersOf(operation, status) };
      const isShared = full.description in ERRORS && !operation.deprecated;
      if (isShared) responses[full.description] = full;
      operation.responses = {
        ...operation.responses,
        [status]: isShared ? { $ref: `#/components/responses/${full.description}` } : full,
      };
    }
  }
  const headers = { ...HEADERS, ...(operations.some(({ deprecated }) => deprecated) ? DEPRECATION_HEADERS : {}) };
  return { ...document, components: { ...document.components, headers, responses } };
}

function operationsOf({ paths = {} }: Document): OpenAPIV3_1.OperationObject[] {
  return Object.values(paths).flatMap((item) => Object.values(item ?? {}) as OpenAPIV3_1.OperationObject[]);
}

function headersOf(operation: OpenAPIV3_1.OperationObject, status: string): Record<string, { $ref: string }> {
  const parameters = (operation.parameters ?? []) as { name: string }[];
  const takes = (header: string) => parameters.some(({ name }) => name === header);
  const isReplayable = status === '201' && takes('idempotency-key');
  const hasETag = (status === '200' || status === '304') && takes('if-none-match');
  const deprecation = operation.deprecated ? Object.keys(DEPRECATION_HEADERS) : [];
  const onlyHere = [HEADERS_BY_STATUS[status], isReplayable && 'Idempotent-Replayed', hasETag && 'ETag'];
  const names = ['X-Request-Id', ...onlyHere, ...deprecation];
  return Object.fromEntries(
    names.flatMap((name) => (name ? [[name, { $ref: `#/components/headers/${name}` }] as const] : [])),
  );
}
