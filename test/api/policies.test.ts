import { fastify, type FastifyInstance, type RouteShorthandOptions } from 'fastify';
import { Type } from 'typebox';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  MEMBER,
  MONEY,
  PUBLIC,
  READ,
  READ_BY_POST,
  READ_MONEY,
  enforcePolicies,
} from '../../control-plane/http/access/policy.js';
import { TestControlPlane } from '../harness/control-plane.js';

let test: TestControlPlane;
let app: FastifyInstance;

beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(() => {
  app = fastify();
  enforcePolicies(app, test.core.platform);
});

const complete = {
  config: { policy: PUBLIC },
  schema: { operationId: 'answer', summary: 'Answers', response: { 200: Type.Null() } },
} as const;

it('a route that declares everything is taken', async () => {
  app.get('/complete', complete, () => null);
  await app.ready();
});

it.each([
  ['policy', { ...complete, config: {} }],
  ['response', { ...complete, schema: { operationId: 'answer', summary: 'Answers' } }],
  ['not say what it does', { ...complete, schema: { operationId: 'answer', response: { 200: Type.Null() } } }],
  ['names no operation', { ...complete, schema: { summary: 'Answers', response: { 200: Type.Null() } } }],
])('a route without one stops the boot: %s', (missing, options) => {
  expect(() => app.get('/incomplete', options as RouteShorthandOptions, () => null)).toThrow(missing);
});

it.each([
  ['POST', READ, 'lets callers in who only read'],
  ['DELETE', READ_MONEY, 'lets callers in who only read'],
  ['GET', MEMBER, 'keeps callers out who only read'],
  ['GET', MONEY, 'keeps callers out who only read'],
] as const)('a %s with the wrong right stops the boot', (method, policy, said) => {
  const wrong = { ...complete, config: { policy }, method, url: '/wrong', handler: () => null };
  expect(() => app.route(wrong)).toThrow(said);
});

it.each([
  ['GET', READ],
  ['GET', READ_MONEY],
  ['POST', READ_BY_POST],
  ['POST', MEMBER],
] as const)('a %s with a right that fits is taken', async (method, policy) => {
  app.route({ ...complete, config: { policy }, method, url: '/right', handler: () => null });
  await app.ready();
});
