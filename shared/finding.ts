/** The most findings that one report can have, and the longest texts of each, in characters. */
export const MOST_FINDINGS = 128;
export const LONGEST_OF_FINDING = { check: 64, what: 512, advice: 512 } as const;
