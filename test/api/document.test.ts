import { Validator } from '@seriousme/openapi-schema-validator';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ERRORS } from '../../control-plane/http/errors/error-codes.js';
import { VERSION } from '../../shared/version.js';
import {
  fetchDocument,
  resolveResponse,
  type ApiDocument,
  type JsonSchema,
  type Operation,
} from '../harness/openapi-conformance.js';
import { TestControlPlane } from '../harness/control-plane.js';

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

let test: TestControlPlane;
let document: ApiDocument;

beforeAll(async () => {
  test = await TestControlPlane.start();
  document = await fetchDocument(test.api.baseUrl);
});
afterAll(() => test.stop());

it('the served document is OpenAPI 3.1', async () => {
  expect(document.openapi).toBe('3.1.0');
  expect(await new Validator().validate({ ...document })).toEqual({ valid: true });
});

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ where: `${method} ${path}`, ...operation })),
  );

it('is of the release that serves it, under its licence', () => {
  expect(document.info).toMatchObject({ version: VERSION, license: { identifier: 'Apache-2.0' } });
  expect(document.info.version).toBe(manifest.version);
});

/** What an operation begins with, so that whoever knows one of a kind finds the others. */
const VERBS =
  /^(accept|add|adopt|approve|assign|cancel|change|close|confirm|cordon|create|credit|deactivate|declare|deny|deploy|destroy|duplicate|end|estimate|export|find|get|grant|leave|list|open|receive|remove|rename|replace|replay|request|require|reset|restore|revoke|schedule|send|sign|start|stop|suspend|takeDown|uncordon|update|waive|withdraw)[A-Z][A-Za-z]+$/;

it('says of a body whether it may be left out, and then it may', async () => {
  const mustSend = (where: string) =>
    operations().find((operation) => operation.where === where)?.requestBody?.required;
  expect(mustSend('post /v1/instances')).toBe(true);
  expect(mustSend('patch /v1/operator/offers/{id}')).toBe(true);
  expect(mustSend('post /v1/instances/{id}/access')).toBeUndefined();
  expect(mustSend('post /v1/operator/enrollment-tokens')).toBeUndefined();
  expect(await test.operator.request('POST', '/v1/operator/enrollment-tokens')).toMatchObject({ status: 201 });
});

it('names every operation once, with a verb', () => {
  const names = operations().map(({ operationId }) => operationId);
  expect(names.filter((name) => !VERBS.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});

it('keeps the names of operations: generated clients call them', () => {
  const named = operations().map(({ where, operationId }) => [where, operationId]);
  expect(Object.fromEntries(named)).toMatchObject({
    'get /v1/offers': 'listOffers',
    'get /v1/templates': 'listTemplates',
    'post /v1/api-keys': 'createApiKey',
    'get /v1/api-keys': 'listApiKeys',
    'delete /v1/api-keys/{id}': 'revokeApiKey',
    'post /v1/instances': 'deployInstance',
    'get /v1/instances': 'listInstances',
    'get /v1/instances/{id}': 'getInstance',
    'post /v1/instances/{id}/stop': 'stopInstance',
    'post /v1/instances/{id}/start': 'startInstance',
    'delete /v1/instances/{id}': 'destroyInstance',
    'get /v1/instances/{id}/logs': 'getInstanceLogs',
    'get /v1/billing/transactions': 'listTransactions',
    'get /v1/billing/spend-daily': 'listDailySpend',
  });
});

/** Each schema in a value that is named `path`, with where it is. */
function* fieldsOf(schema: JsonSchema, path: string): Generator<{ path: string; field: JsonSchema }> {
  for (const [name, field] of Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>)) {
    yield { path: `${path}.${name}`, field };
    yield* fieldsOf(field, `${path}.${name}`);
  }
  for (const part of ['anyOf', 'allOf', 'oneOf'].flatMap((key) => (schema[key] ?? []) as JsonSchema[]))
    yield* fieldsOf(part, path);
  if (schema['items']) yield* fieldsOf(schema['items'] as JsonSchema, `${path}[]`);
}

it('says of every field, parameter and header what it means', () => {
  const silent: string[] = [];
  const examine = (schema: JsonSchema, path: string) => {
    for (const { path: at, field } of fieldsOf(schema, path)) if (!field['description']) silent.push(at);
  };
  for (const [name, schema] of Object.entries(document.components.schemas)) examine(schema, name);
  for (const { where, parameters = [], requestBody, responses } of operations()) {
    for (const { name, description } of parameters) if (!description) silent.push(`${where}: ${name}`);
    for (const { schema } of Object.values(requestBody?.content ?? {})) examine(schema, where);
    for (const response of Object.values(responses))
      for (const { schema } of Object.values(resolveResponse(document, response)?.content ?? {}))
        examine(schema, where);
  }
  for (const [name, header] of Object.entries(document.components.headers))
    if (!('description' in header)) silent.push(name);
  expect(silent).toEqual([]);
});

it('has no choice of one', () => {
  const single: unknown[] = [];
  JSON.stringify(document, (key, value: unknown) => {
    if (['allOf', 'anyOf', 'oneOf'].includes(key) && (value as unknown[]).length < 2) single.push(value);
    return value;
  });
  expect(single).toEqual([]);
});

it('types the instance as clients rely on it', () => {
  const { properties } = document.components.schemas['Instance'] as { properties: Record<string, JsonSchema> };
  const orNull = (schema: object) => ({ anyOf: [schema, { type: 'null' }] });
  for (const when of ['', 'stop_', 'suspended_'])
    expect(properties[`${when}hold_price_per_hour_micro`]).toMatchObject(orNull({ type: 'integer' }));
  expect(properties).toMatchObject({
    allowed_actions: { type: 'array', items: { type: 'string', enum: ['start', 'stop', 'destroy'] } },
    gpu_release: orNull({ type: 'string', enum: ['pending', 'released', 'unsupported'] }),
    deployed_via_api_key: orNull({
      properties: { kind: { type: 'string', enum: ['personal', 'team'] } },
    }),
  });
  expect(document.components.schemas['ApiKey']).toMatchObject({
    properties: { kind: { type: 'string', enum: ['personal', 'team'] } },
  });
});

it('names the headers of an answer, and what any request can meet', () => {
  const headersOf = (operation: Operation | undefined, status: string) =>
    Object.keys(resolveResponse(document, operation?.responses[status])?.headers ?? {});
  for (const operation of operations())
    for (const status of Object.keys(operation.responses))
      expect(headersOf(operation, status), operation.where).toContain('X-Request-Id');
  const deploy = document.paths['/v1/instances']?.['post'];
  expect(headersOf(deploy, '201')).toContain('Idempotent-Replayed');
  expect(headersOf(deploy, '405')).toContain('Allow');
  expect(headersOf(deploy, '429')).toContain('Retry-After');
  expect(deploy?.responses).toHaveProperty('431');
  expect(headersOf(document.paths['/v1/instances/{id}/stop']?.['post'], '202')).toEqual(['X-Request-Id']);
});

it('describes every error once, with its status and its extra fields', () => {
  for (const [code, { status, extra = {}, onlyOnPages }] of Object.entries(ERRORS)) {
    if (onlyOnPages) {
      expect(document.components.schemas).not.toHaveProperty([`error.${code}`]);
      continue;
    }
    const schema = document.components.schemas[`error.${code}`];
    expect(schema, code).toMatchObject({ properties: { code: { enum: [code] } } });
    const always = Object.entries(extra).flatMap(([name, field]) => ('~optional' in field ? [] : [name]));
    expect(schema?.['required']).toEqual(['code', 'message', 'request_id', ...always]);
    for (const name of Object.keys(extra)) expect(schema?.['properties']).toHaveProperty(name);
    expect(schema?.['description']).toMatch(new RegExp(`^${status}: .`));
  }
});

it('says of every operation what it does, who may call it, and what it answers', () => {
  const groups = document.tags.map(({ name }) => name);
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { summary, description, tags, security, responses }] of Object.entries(methods)) {
      expect(summary, `${method} ${path}`).toBeTruthy();
      expect(description, `${method} ${path}`).toMatch(/credential|operators|session/);
      expect(groups, `${method} ${path}`).toEqual(expect.arrayContaining(tags));
      expect(Array.isArray(security), `${method} ${path}`).toBe(true);
      expect(Object.keys(responses), `${method} ${path}`).toEqual(expect.arrayContaining(['404', '429', '500', '503']));
    }
  }
});

it('lets a sender leave out what has a default', () => {
  const mint = document.paths['/v1/api-keys']?.['post'];
  expect(mint?.requestBody?.content['application/json']?.schema['required']).toEqual(['name']);
  const logs = document.paths['/v1/instances/{id}/logs']?.['get'];
  expect(logs?.parameters?.find(({ name }) => name === 'tail')).toMatchObject({
    required: false,
    schema: { minimum: 1, maximum: 1000, default: 200 },
  });
});

it('is a page to read, which loads nothing from elsewhere', async () => {
  const page = await fetch(`${test.api.baseUrl}/docs/`);
  expect(page.status).toBe(200);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'");
  const html = await page.text();
  const sources = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source ?? '');
  expect(sources.length).toBeGreaterThan(2);
  for (const source of sources) {
    expect(source).not.toMatch(/^https?:/);
    const part = await fetch(new URL(source, page.url));
    expect((await part.text()).length).toBeGreaterThan(0);
    expect(part.status).toBe(200);
  }
});
