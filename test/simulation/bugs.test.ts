import { describe, expect, it } from 'vitest';
import { BUGS } from './bugs.js';
import { FOUND_BUGS } from './found-bugs.js';
import { CONVERGED, INVARIANTS } from './invariants.js';
import { KEPT_SEEDS } from './kept-seeds.js';
import { MONEY_BUGS } from './money-bugs.js';
import { describeBugs } from './describe-bugs.js';

describe('a bug that is put in is caught', () => {
  describeBugs([...BUGS, ...FOUND_BUGS]);

  it('and there is one for every invariant', () => {
    const caught = new Set([...BUGS, ...MONEY_BUGS].map(({ invariant }) => invariant));
    expect([...caught].sort()).toEqual([...Object.keys(INVARIANTS), ...Object.keys(CONVERGED)].sort());
  });

  it('and one for everything that a kept seed has found', () => {
    expect(FOUND_BUGS.map(({ found }) => found)).toEqual(KEPT_SEEDS.map(({ found }) => found));
  });
});
