import type { Random } from './random.js';

/** Where something can go wrong. */
export const MOMENTS = [
  'before a commit',
  'after a commit',
  'before a journal write',
  'after a journal write',
  'before a Docker call',
  'after a Docker call',
  'a Docker call fails',
  'a Docker call is late',
  'a message is lost',
  'a message comes twice',
] as const;
export type Moment = (typeof MOMENTS)[number];

/** Decides whether it does: by chance, or at one moment that was chosen before. */
export class Faults {
  private planned: { moment: Moment; nth: number } | undefined;
  private seen = 0;
  private resting = false;

  constructor(private readonly random: Random) {}

  strikes(moment: Moment, probability: number): boolean {
    if (this.resting) return false;
    if (!this.planned) return this.random.chance(probability);
    if (moment !== this.planned.moment) return false;
    this.seen += 1;
    return this.seen === this.planned.nth;
  }

  /** From now on exactly the nth moment of a kind goes wrong, counted from 1. */
  plan(moment: Moment, nth: number): void {
    Object.assign(this, { planned: { moment, nth }, seen: 0, resting: false });
  }

  /** From now on nothing goes wrong. Answers how many moments of the planned kind there were. */
  rest(): number {
    this.resting = true;
    return this.seen;
  }
}
