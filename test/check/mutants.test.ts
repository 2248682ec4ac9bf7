import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mutated, type Mutant } from '../mutants/mutant.js';
import { MUTANTS } from '../mutants/mutants.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

describe('The mutants', () => {
  it.each(MUTANTS)('still apply to the sources: $name', (mutant) => {
    const source = readFileSync(join(root, mutant.file), 'utf8');
    expect(mutated(mutant, source)).not.toBe(source);
    for (const test of [...mutant.tests, ...(mutant.docker === undefined ? [] : [mutant.docker])])
      expect(existsSync(join(root, test)), test).toBe(true);
  });

  it('have a name each', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  });
});

it('a mutant whose text is gone, or there twice, is refused', () => {
  const mutant: Mutant = { name: 'any', file: 'a.ts', before: '$1;', after: '$&', tests: [] };
  expect(mutated(mutant, 'a $1; b')).toBe('a $& b');
  expect(() => mutated(mutant, 'a b')).toThrow('mutant any: its text is in a.ts 0 times');
  expect(() => mutated(mutant, '$1; $1;')).toThrow('2 times');
});
