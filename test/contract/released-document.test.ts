import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { breakingChanges } from '../harness/breaking-changes.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { fetchDocument, type ApiDocument } from '../harness/openapi-conformance.js';

const read = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as ApiDocument;

let test: TestControlPlane;
let served: ApiDocument;

beforeAll(async () => {
  const stripe = { secretKey: 'unused', webhookSecret: 'unused', returnUrl: 'http://localhost', apiUrl: undefined };
  test = await TestControlPlane.start({ stripe });
  served = await fetchDocument(test.url);
});
afterAll(() => test.stop());

it('docs/openapi.json is the document that is served', () => {
  const isSame = JSON.stringify(read('docs/openapi.json')) === JSON.stringify(served);
  expect(isSame, 'the API has changed: npm run --silent openapi > docs/openapi.json').toBe(true);
});

/** API rule 2. With a release, its docs/openapi.json becomes the next file to compare with. */
it('no client of the released API is broken', () => {
  expect(breakingChanges(read('test/fixtures/release-0.1.0/openapi.json'), served)).toEqual([]);
});
