import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { breakingChanges } from '../harness/breaking-changes.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { deprecationFaults, withoutEnded } from '../harness/deprecations.js';
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

/** What a client of a release meets in the next one, and so in all later ones; the last one is today's. API rules 2 and 72. */
describe.each(RELEASES.map((release, index) => [release, RELEASES[index + 1] ?? 'now']))(
  'from release %s to %s',
  (release, next) => {
    const documents = () => {
      const after = next === 'now' ? served : read(leftBy(next, 'openapi.json'));
      return [read(leftBy(release, 'openapi.json')), after] as const;
    };

    it('no client is broken by anything that has not reached its sunset', () => {
      const [before, after] = documents();
      const today = new Date().toISOString().slice(0, 'YYYY-MM-DD'.length);
      const breaking = breakingChanges(withoutEnded(before, today), after);
      expect(breaking.filter((line) => !NEW_WORDS.test(line))).toEqual([]);
    });

    it('what is deprecated goes on for 24 months, and as long as was promised', () => {
      expect(deprecationFaults(...documents())).toEqual([]);
    });
  },
);
