import { describe, expect, it } from 'vitest';
import { BUGS } from './bugs.js';
import { CONVERGED, INVARIANTS } from './invariants.js';
import { MONEY_BUGS } from './money-bugs.js';
import { describeBugs } from './put-in.js';

describe('a bug that is put in is caught', () => {
  describeBugs(BUGS);

  it('and there is one for every invariant', () => {
    const caught = new Set([...BUGS, ...MONEY_BUGS].map(({ invariant }) => invariant));
    expect([...caught].sort()).toEqual([...Object.keys(INVARIANTS), ...Object.keys(CONVERGED)].sort());
  });
});
