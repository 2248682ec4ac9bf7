import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ERRORS } from '../../control-plane/http/error-codes.js';
import { fetchDocument, type ApiDocument } from '../harness/conformity.js';
import { TestControlPlane } from '../harness/control-plane.js';

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

it('describes every error once, with its status and its extra fields', () => {
  for (const [code, { status, extra = {} }] of Object.entries(ERRORS)) {
    const schema = document.components.schemas[`error.${code}`];
    expect(schema).toMatchObject({ properties: { code: { enum: [code] } } });
    expect(schema?.['required']).toEqual(['code', 'message', 'request_id', ...Object.keys(extra)]);
    expect(schema?.['description']).toMatch(new RegExp(`^${status}: .`));
  }
});

it('says of every operation what it does, who may call it, and what it answers', () => {
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { summary, security, responses }] of Object.entries(operations)) {
      expect(summary, `${method} ${path}`).toBeTruthy();
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
