import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseImageReference } from '../../shared/image-reference.js';

const DIGEST = `sha256:${'a1'.repeat(32)}`;

describe('an image reference', () => {
  it.each([
    ['debian', null, 'debian', null, null],
    ['debian:bookworm-20240101', null, 'debian', 'bookworm-20240101', null],
    ['library/debian', null, 'library/debian', null, null],
    ['org/team/app_one/x__y/a--b.c:V1.2_3', null, 'org/team/app_one/x__y/a--b.c', 'V1.2_3', null],
    ['localhost/gpurent/vm-runner:1', 'localhost', 'gpurent/vm-runner', '1', null],
    ['localhost:5000/app', 'localhost:5000', 'app', null, null],
    ['127.0.0.1:23999/test/app:1', '127.0.0.1:23999', 'test/app', '1', null],
    ['[2001:db8::1]:5000/app:1', '[2001:db8::1]:5000', 'app', '1', null],
    ['Registry/app', 'Registry', 'app', null, null],
    [`ghcr.io/org/app:1@${DIGEST}`, 'ghcr.io', 'org/app', '1', DIGEST],
    [`app@${DIGEST}`, null, 'app', null, DIGEST],
    [`app@sha256+b64u:${'a1'.repeat(16)}`, null, 'app', null, `sha256+b64u:${'a1'.repeat(16)}`],
    [`app@a.b_c-d:${'a1'.repeat(64)}`, null, 'app', null, `a.b_c-d:${'a1'.repeat(64)}`],
    ['localhosts', null, 'localhosts', null, null],
    [`${'a1'.repeat(32)}g`, null, `${'a1'.repeat(32)}g`, null, null],
    ['a'.repeat(255), null, 'a'.repeat(255), null, null],
  ])('%s is one', (text, registry, repository, tag, digest) => {
    expect(parseImageReference(text)).toEqual({ registry, repository, tag, digest });
  });

  it.each([
    '',
    '../info?x=',
    '../127.0.0.1:2375/info?x=',
    'get?names=debian&x=',
    'a/../b',
    './a',
    'a//b',
    '/a',
    'a/',
    'a:',
    'a@',
    'a b',
    'a%2f..%2fb',
    'a\\b',
    'a#b',
    'a?b',
    'Upper',
    'org/Upper',
    'a..b',
    'a___b',
    '-a',
    'a-',
    'a:-tag',
    `a:${'t'.repeat(129)}`,
    'a@sha256:short',
    `a@${DIGEST}@${DIGEST}`,
    `a@!${DIGEST}`,
    `a@${DIGEST}!`,
    `a@sha512:${'a1'.repeat(64)}a`,
    `a@sha256+1b:${'a1'.repeat(16)}`,
    'a'.repeat(256),
    'a1'.repeat(32),
    `${'a/'.repeat(128)}a`,
    'registry.example.com:999999/a',
    'user:password@registry.example.com/a',
    'https://registry.example.com/a',
    'a\n',
    'é',
  ])('%j is none', (text) => {
    expect(parseImageReference(text)).toBeUndefined();
  });

  it('has 512 characters at most', () => {
    const digest = `sha512:${'a1'.repeat(64)}`;
    const ofLength = (length: number) => `${'a'.repeat(255)}:${'t'.repeat(length - 257 - digest.length)}@${digest}`;
    expect(ofLength(512)).toHaveLength(512);
    expect(parseImageReference(ofLength(512))).toMatchObject({ digest });
    expect(parseImageReference(ofLength(513))).toBeUndefined();
  });

  it('whatever is one, has nothing in it that means something in an address', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...Array.from('aA0._-/:@?#%&=[] \\')) }), (text) => {
        const reference = parseImageReference(text);
        if (!reference) return;
        expect(text).toMatch(/^[\w.\-/:@[\]]+$/);
        // Only a tag may hold dots in a row: `a:a..`. It is never a whole part of a path.
        expect(`${reference.registry}/${reference.repository}`).not.toContain('..');
      }),
      { numRuns: 5_000 },
    );
  });

  it('is parsed in a time that does not explode with its length', () => {
    // One step of a backtracking parser for each of 2^200 ways would not end.
    expect(parseImageReference(`${'a-'.repeat(127)}!`)).toBeUndefined();
    expect(parseImageReference(`${'a'.repeat(500)}!`)).toBeUndefined();
  });
});
