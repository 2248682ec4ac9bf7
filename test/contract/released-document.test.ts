import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { breakingChanges } from '../harness/breaking-changes.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { RELEASES, leftBy } from '../harness/releases.js';
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

/** Answers of which API rule 2 says that they can have more words: the role of a member, where an admin has given a new one. */
const NEW_WORDS = /(\.|: )role: "(billing|viewer)" is a new answer$/;

/** API rule 2. */
it.each(RELEASES)('no client of the API of release %s is broken', (release) => {
  const breaking = breakingChanges(read(leftBy(release, 'openapi.json')), served);
  expect(breaking.filter((line) => !NEW_WORDS.test(line))).toEqual([]);
});
