/** One result of a check. */
export interface Finding {
  /** `bad`: renters cannot be served, or not safely. `doubtful`: it works, but should be improved. */
  verdict: 'good' | 'doubtful' | 'bad';
  what: string;
  /** What the host owner can do about it. */
  advice?: string;
}

export interface Check {
  name: string;
  look: () => Promise<Finding[]>;
}

export const good = (what: string): Finding => ({ verdict: 'good', what });
export const doubtful = (what: string, advice: string): Finding => ({ verdict: 'doubtful', what, advice });
export const bad = (what: string, advice: string): Finding => ({ verdict: 'bad', what, advice });
