import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { fastify, type FastifyInstance, type FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { announceDeprecations, type Deprecation } from '../../control-plane/http/schema/deprecations.js';
import { documentApi } from '../../control-plane/http/openapi/openapi.js';
import { PUBLIC } from '../../control-plane/http/access/policy.js';
import { deprecated, text } from '../../control-plane/http/schema/schemas.js';
import { validateStrictly } from '../../control-plane/http/schema/validation.js';
import { breakingChanges } from '../harness/breaking-changes.js';
import { deprecationFaults, withoutEnded } from '../harness/deprecations.js';
import type { ApiDocument } from '../harness/openapi-conformance.js';

const OLD: Deprecation = { since: '2027-01-31', sunset: '2029-01-31', instead: 'GET /v1/offers/new' };
const [DAY_BEFORE, AFTERWARDS] = ['2029-01-30', '2029-01-31'];

interface Parts {
  /** Of the route `GET /v1/offers/old`; null: there is no such route. */
  route?: Deprecation | undefined | null;
  /** Of the parameter `colour`, and of the field of the same name of the answer. */
  field?: Deprecation | undefined | null;
}

/** A server with a route that is no route of the product. */
async function serve({ route, field }: Parts = {}) {
  const app = fastify().withTypeProvider<TypeBoxTypeProvider>() as unknown as FastifyInstance;
  validateStrictly(app);
  announceDeprecations(app);
  await documentApi(app, {});
  const colour = field ? deprecated(text('Its colour'), field) : text('Its colour');
  const part = field === null ? {} : { colour: Type.Optional(colour) };
  const schema = {
    summary: 'Reads an offer',
    operationId: 'readOffer',
    description: 'As it is.',
    querystring: Type.Object(part),
    response: { 200: Type.Object({ id: text('Its id'), ...part }) },
  };
  const config = { policy: PUBLIC, ...(route ? { deprecated: route } : {}) } as const;
  const handler = async (request: FastifyRequest) => {
    if (request.url.endsWith('none')) throw Object.assign(new Error('there is none'), { statusCode: 404 });
    return { id: 'x' };
  };
  if (route !== null) app.get('/v1/offers/old', { config, schema }, handler);
  const other = { ...schema, operationId: 'readOther' };
  app.get('/v1/offers/new', { config: { policy: PUBLIC }, schema: other }, handler);
  return { app, document: (await app.inject('/v1/openapi.json')).json<ApiDocument>() };
}

const documentOf = async (parts?: Parts) => (await serve(parts)).document;
const breaksOn = (today: string, before: ApiDocument, after: ApiDocument) =>
  breakingChanges(withoutEnded(before, today), after);

describe('a deprecated route', () => {
  it('says so with every answer, with the dates of the standards', async () => {
    const { app } = await serve({ route: OLD });
    const headers = { deprecation: '@1801353600', sunset: 'Wed, 31 Jan 2029 00:00:00 GMT' };
    expect((await app.inject('/v1/offers/old')).headers).toMatchObject(headers);
    const refused = await app.inject('/v1/offers/old?colour=none');
    expect(refused).toMatchObject({ statusCode: 404, headers });
    for (const name of Object.keys(headers))
      expect((await app.inject('/v1/offers/new')).headers).not.toHaveProperty(name);
  });

  it('is marked in the document, with its headers', async () => {
    const { paths, components } = await documentOf({ route: OLD });
    expect(paths['/v1/offers/old']?.['get']).toMatchObject({
      deprecated: true,
      'x-deprecated-since': '2027-01-31',
      'x-sunset': '2029-01-31',
      description: expect.stringContaining(
        'Deprecated since 2027-01-31, and can be removed on 2029-01-31. Use GET /v1/offers/new.',
      ) as string,
      responses: { 200: { headers: { Deprecation: {}, Sunset: {} } } },
    });
    const answers = Object.values(paths['/v1/offers/old']?.['get']?.responses ?? {});
    expect(answers.every(({ headers }) => headers?.['Sunset'] !== undefined)).toBe(true);
    expect(components.headers).toHaveProperty('Deprecation');
    const [other, none] = [paths['/v1/offers/new']?.['get'], await documentOf()];
    expect(other).not.toHaveProperty('deprecated');
    expect(JSON.stringify(none)).not.toMatch(/[Dd]eprecat|Sunset/);
  });

  it('may be removed on its sunset, and not a day before; one that is not deprecated never', async () => {
    const [before, after] = [await documentOf({ route: OLD }), await documentOf({ route: null })];
    const removed = ['GET /v1/offers/old: removed'];
    expect(breaksOn(DAY_BEFORE, before, after)).toEqual(removed);
    expect(breaksOn(AFTERWARDS, before, after)).toEqual([]);
    expect(breaksOn(AFTERWARDS, await documentOf(), after)).toEqual(removed);
  });
});

describe('a deprecated field', () => {
  it('is marked in the document, which alone says so', async () => {
    const { app, document } = await serve({ field: OLD });
    const marked = { deprecated: true, 'x-sunset': '2029-01-31' };
    const operation = document.paths['/v1/offers/old']?.['get'];
    const answer = operation?.responses['200']?.content?.['application/json']?.schema;
    expect(answer).toMatchObject({ properties: { colour: marked } });
    expect(operation?.parameters).toMatchObject([{ name: 'colour', schema: marked }]);
    expect((await app.inject('/v1/offers/old?colour=red')).headers).not.toHaveProperty('sunset');
  });

  it('may be removed on its sunset, and not a day before', async () => {
    const [before, after] = [await documentOf({ field: OLD }), await documentOf({ field: null })];
    expect(breaksOn(DAY_BEFORE, before, after).sort()).toEqual([
      'GET /v1/offers/new: 200.colour: removed',
      'GET /v1/offers/new: parameter query colour is removed',
      'GET /v1/offers/old: 200.colour: removed',
      'GET /v1/offers/old: parameter query colour is removed',
    ]);
    expect(breaksOn(AFTERWARDS, before, after)).toEqual([]);
  });
});

describe('a deprecation', () => {
  const faults = async (before: Parts, after: Parts) =>
    deprecationFaults(await documentOf(before), await documentOf(after));

  it.each(['route', 'field'] as const)('of a %s is refused if it is shorter than 24 months', async (kind) => {
    expect(await faults({}, { [kind]: OLD })).toEqual([]);
    const [fault = ''] = await faults({}, { [kind]: { ...OLD, sunset: '2029-01-30' } });
    expect(fault).toMatch(/\/v1\/offers\/.*: ends less than 24 months later/);
    expect(await faults({}, { [kind]: { ...OLD, sunset: 'soon' } })).not.toEqual([]);
  });

  it('that is released cannot be shortened; it can be withdrawn, or go on for longer', async () => {
    const long = { ...OLD, sunset: '2030-01-31' };
    expect(await faults({ route: long }, { route: OLD })).toEqual([
      'paths /v1/offers/old get: ends before 2030-01-31, which was promised',
    ]);
    expect(await faults({ route: OLD }, { route: long })).toEqual([]);
    expect(await faults({ route: OLD }, {})).toEqual([]);
  });
});
