import { readFileSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { lastRelease } from '../../scripts/releases/build-version.js';
import { joinChanges, withRelease } from '../../scripts/releases/changelog.js';

const CHANGES = new URL('../../changes/', import.meta.url);

it('joins changes by kind, with what people must do first', () => {
  const files = new Map([
    ['README.md', 'how'],
    ['b.added.md', 'B.\n'],
    ['a.fixed.md', 'A.'],
    ['summary.md', 'In short.\n'],
    ['a.added.md', 'C.'],
    ['z.must.md', 'Do it.'],
  ]);
  const section = joinChanges(files);
  expect(section).toBe('In short.\n\nWhat you must do\n\n- Do it.\n\nAdded\n\n- C.\n- B.\n\nFixed\n\n- A.');
  const changelog = withRelease('# Changelog\n\nOf all.\n\n## 0.2.0\n\nOld.\n', '0.3.0 (2026-12-05)', section);
  expect(changelog).toMatch(
    /^# Changelog\n\nOf all.\n\n## 0.3.0 \(2026-12-05\)\n\nIn short.\n[^]*\n- A.\n\n## 0.2.0\n\nOld.\n$/,
  );
  expect(lastRelease(changelog)).toEqual({ version: '0.3.0', date: '2026-12-05' });
});

it.each([
  ['a.new.md', 'A.', 'call it NAME.KIND.md'],
  ['a.md', 'A.', 'call it NAME.KIND.md'],
  ['a.added.md', ' ', 'one line of at most 400'],
  ['a.added.md', 'A.\nB.', 'one line of at most 400'],
  ['a.added.md', 'A'.repeat(401), 'one line of at most 400'],
])('refuses %s with %j', (name, text, reason) => {
  expect(() => joinChanges(new Map([[name, text]]))).toThrow(
    `changes/${name}: ${reason === 'call it NAME.KIND.md' ? reason : `write ${reason}`}`,
  );
});

it('the next release is read in two minutes', () => {
  const files = new Map(readdirSync(CHANGES).map((name) => [name, readFileSync(new URL(name, CHANGES), 'utf8')]));
  expect(joinChanges(files).split(/\s+/).length).toBeLessThan(600);
});
