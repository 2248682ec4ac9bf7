import { describe, expect, it } from 'vitest';
import { breakingChanges } from '../harness/breaking-changes.js';
import type { ApiDocument, JsonSchema } from '../harness/openapi-conformance.js';

const object = (properties: Record<string, JsonSchema>, required: string[] = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

/** A document with one route of each method, made anew for each test. */
const make = () => ({
  paths: {
    '/v1/things': {
      get: {
        operationId: 'listThings',
        security: [] as object[],
        parameters: [
          {
            in: 'query',
            name: 'state',
            required: false,
            schema: { type: 'string', enum: ['on', 'off'] } as JsonSchema,
          },
        ],
        responses: {
          200: {
            headers: { 'X-Request-Id': {} } as Record<string, object>,
            content: {
              'application/json': { schema: object({ items: { type: 'array', items: { $ref: THING } } }) },
            } as Record<string, { schema: JsonSchema }>,
          },
        } as Record<string, object>,
      },
      post: {
        operationId: 'addThing',
        security: [{ bearer: [] }],
        requestBody: {
          required: false,
          content: {
            'application/json': {
              schema: object(
                {
                  name: { type: 'string', maxLength: 64 },
                  size: { type: 'integer', minimum: 1, maximum: 10, default: 2 },
                  label: { anyOf: [{ type: 'string' }, { type: 'null' }] },
                  tags: { type: 'array', maxItems: 9, items: { type: 'string' } },
                },
                ['name'],
              ),
            },
          },
        },
        responses: { 201: { content: { 'application/json': { schema: { $ref: THING } as JsonSchema } } } },
      },
    },
  },
  components: {
    schemas: {
      Thing: object({
        id: { type: 'string', format: 'uuid' },
        state: { type: 'string', enum: ['on', 'off'] },
        label: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        size: { type: 'integer' },
      }),
      'error.NOT_FOUND': object({ code: { type: 'string', enum: ['NOT_FOUND'] }, limit: { type: 'integer' } }),
    } as Record<string, JsonSchema>,
  },
});
const THING = '#/components/schemas/Thing';

type Made = ReturnType<typeof make>;
interface Fields {
  properties: Record<string, JsonSchema>;
  required: string[];
}

const thingOf = (made: Made) => made.components.schemas['Thing'] as unknown as Fields;
const bodyOf = (made: Made) =>
  made.paths['/v1/things'].post.requestBody.content['application/json'].schema as unknown as Fields;
const without = <T>(record: Record<string, T>, name: string) => void Reflect.deleteProperty(record, name);

function changed(change: (made: Made) => void): string[] {
  const after = make();
  change(after);
  return breakingChanges(make() as unknown as ApiDocument, after as unknown as ApiDocument);
}

describe('a change that breaks clients is seen', () => {
  it.each<[string, (made: Made) => void, string]>([
    ['a path is removed', ({ paths }) => without(paths, '/v1/things'), 'GET /v1/things: removed'],
    ['a method is removed', ({ paths }) => without(paths['/v1/things'], 'post'), 'POST /v1/things: removed'],
    [
      'an operation is renamed',
      ({ paths }) => void (paths['/v1/things'].get.operationId = 'getThings'),
      'GET /v1/things: operationId listThings is now getThings',
    ],
    [
      'a public route takes a credential',
      ({ paths }) => void paths['/v1/things'].get.security.push({ bearer: [] }),
      'GET /v1/things: takes a credential',
    ],
    [
      'a parameter is removed',
      ({ paths }) => void paths['/v1/things'].get.parameters.pop(),
      'GET /v1/things: parameter query state is removed',
    ],
    [
      'a parameter is demanded',
      ({ paths }) =>
        void paths['/v1/things'].get.parameters.push({
          in: 'query',
          name: 'since',
          required: true,
          schema: { type: 'string' },
        }),
      'GET /v1/things: new parameter query since is required',
    ],
    [
      'a parameter takes fewer words',
      ({ paths }) => paths['/v1/things'].get.parameters.forEach(({ schema }) => (schema['enum'] = ['on'])),
      'GET /v1/things: query state: "off" is not taken any more',
    ],
    [
      'a parameter must be given',
      ({ paths }) => paths['/v1/things'].get.parameters.forEach((parameter) => (parameter.required = true)),
      'GET /v1/things: parameter query state is required',
    ],
    [
      'a body must be given',
      ({ paths }) => void (paths['/v1/things'].post.requestBody.required = true),
      'POST /v1/things: the body is required',
    ],
    [
      'a new field of a request is required',
      (made) => {
        bodyOf(made).properties['kind'] = { type: 'string' };
        bodyOf(made).required.push('kind');
      },
      'POST /v1/things: body.kind: is required',
    ],
    [
      'a field of a request is removed',
      (made) => without(bodyOf(made).properties, 'tags'),
      'POST /v1/things: body.tags: removed',
    ],
    [
      'a field of a request changes its type',
      (made) => void (bodyOf(made).properties['name'] = { type: 'integer' }),
      'POST /v1/things: body.name: string is now integer',
    ],
    [
      'a field of a request takes no null any more',
      (made) => void (bodyOf(made).properties['label'] = { type: 'string' }),
      'POST /v1/things: body.label: null is not taken any more',
    ],
    [
      'a bound of a request is narrower',
      (made) => void (bodyOf(made).properties['name'] = { type: 'string', maxLength: 32 }),
      'POST /v1/things: body.name: maxLength is now 32',
    ],
    [
      'a lower bound is higher',
      (made) => Object.assign(bodyOf(made).properties['size'] ?? {}, { minimum: 5 }),
      'POST /v1/things: body.size: minimum is now 5',
    ],
    [
      'a default changes',
      (made) => Object.assign(bodyOf(made).properties['size'] ?? {}, { default: 3 }),
      'POST /v1/things: body.size: default is now 3',
    ],
    [
      'an element of a list in a request changes its type',
      (made) => Object.assign(bodyOf(made).properties['tags'] ?? {}, { items: { type: 'integer' } }),
      'POST /v1/things: body.tags[]: string is now integer',
    ],
    [
      'an answer has another status',
      ({ paths }) => {
        const { get } = paths['/v1/things'];
        get.responses = { 202: get.responses['200'] ?? {} };
      },
      'GET /v1/things: no answer 200 any more',
    ],
    [
      'an answer has another type',
      ({ paths }) => without((paths['/v1/things'].get.responses['200'] as Contents).content, 'application/json'),
      'GET /v1/things: 200: no application/json any more',
    ],
    [
      'a header of an answer is removed',
      ({ paths }) => without((paths['/v1/things'].get.responses['200'] as Contents).headers, 'X-Request-Id'),
      'GET /v1/things: 200: header X-Request-Id is removed',
    ],
    [
      'a field of an answer is removed',
      (made) => without(thingOf(made).properties, 'size'),
      'POST /v1/things: 201.size: removed',
    ],
    [
      'a field of an answer may be missing',
      (made) => void thingOf(made).required.pop(),
      'POST /v1/things: 201.size: may be missing',
    ],
    [
      'a field of an answer changes its type',
      (made) => void (thingOf(made).properties['size'] = { type: 'string' }),
      'GET /v1/things: 200.items[].size: integer is now string',
    ],
    [
      'a field of an answer may be null',
      (made) => void (thingOf(made).properties['size'] = { anyOf: [{ type: 'integer' }, { type: 'null' }] }),
      'POST /v1/things: 201.size: null is a new answer',
    ],
    [
      'a field of an answer has another word',
      (made) => void (thingOf(made).properties['state'] = { type: 'string', enum: ['on', 'off', 'lost'] }),
      'POST /v1/things: 201.state: "lost" is a new answer',
    ],
    [
      'a field of an answer may be any word',
      (made) => void (thingOf(made).properties['state'] = { type: 'string' }),
      'POST /v1/things: 201.state: any value instead of ["on","off"] is a new answer',
    ],
    [
      'a field of an answer has another format',
      (made) => void (thingOf(made).properties['id'] = { type: 'string' }),
      'POST /v1/things: 201.id: format is now undefined',
    ],
    [
      'a field of an answer has another alternative',
      (made) =>
        void (thingOf(made).properties['label'] = {
          anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }],
        }),
      'POST /v1/things: 201.label: "integer" is a new answer',
    ],
    [
      'an error code is removed',
      ({ components }) => without(components.schemas, 'error.NOT_FOUND'),
      'error.NOT_FOUND: removed',
    ],
    [
      'a field of an error is removed',
      ({ components }) => without((components.schemas['error.NOT_FOUND'] as unknown as Fields).properties, 'limit'),
      'error.NOT_FOUND.limit: removed',
    ],
  ])('%s', (_, change, expected) => {
    expect(changed(change)).toContain(expected);
  });
});

interface Contents {
  headers: Record<string, object>;
  content: Record<string, object>;
}

describe('a change that clients need not know of passes', () => {
  it.each<[string, (made: Made) => void]>([
    ['nothing', () => {}],
    ['a new path', ({ paths }) => Object.assign(paths, { '/v1/others': paths['/v1/things'] })],
    [
      'a new optional parameter',
      ({ paths }) =>
        void paths['/v1/things'].get.parameters.push({ in: 'query', name: 'q', required: false, schema: {} }),
    ],
    ['a new optional field of a request', (made) => void (bodyOf(made).properties['kind'] = { type: 'string' })],
    ['a field that may be left out', (made) => void bodyOf(made).required.pop()],
    ['a wider bound', (made) => void (bodyOf(made).properties['name'] = { type: 'string', maxLength: 99 })],
    [
      'null where it was none in a request',
      (made) =>
        void (bodyOf(made).properties['name'] = { anyOf: [{ type: 'string', maxLength: 64 }, { type: 'null' }] }),
    ],
    [
      'more words in a request',
      ({ paths }) => paths['/v1/things'].get.parameters.forEach(({ schema }) => (schema['enum'] = ['on', 'off', 'x'])),
    ],
    [
      'a new field of an answer',
      (made) => {
        thingOf(made).properties['colour'] = { type: 'string' };
        thingOf(made).required.push('colour');
      },
    ],
    ['no null in an answer', (made) => void (thingOf(made).properties['label'] = { type: 'string' })],
    ['fewer words in an answer', (made) => void (thingOf(made).properties['state'] = { type: 'string', enum: ['on'] })],
    ['a new error code', ({ components }) => void (components.schemas['error.OTHER'] = object({}))],
    [
      'a named schema written out',
      (made) => {
        const { paths, components } = made;
        paths['/v1/things'].post.responses[201].content['application/json'].schema = components.schemas['Thing'] ?? {};
      },
    ],
    [
      'an object in parts',
      (made) => {
        const { properties, required } = thingOf(made);
        const { id, ...rest } = properties;
        const names = required.filter((name) => name !== 'id');
        made.components.schemas['Thing'] = { allOf: [object({ id: id ?? {} }), object(rest, names)], type: 'object' };
      },
    ],
  ])('%s', (_, change) => {
    expect(changed(change)).toEqual([]);
  });
});
