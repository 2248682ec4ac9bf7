import type { Random } from './random.js';

/** Where something can go wrong. */
export const MOMENTS = [
  'before a commit',
  'after a commit',
  'before a read ends',
  'after a read',
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

/** Where the control plane has only read since it last wrote: a kill there changes no data, and is like one after that write. */
export const READS: readonly Moment[] = ['before a read ends', 'after a read'];

/** Decides whether it does: by chance, or at one moment that was chosen before. */
export class Faults {
  private planned: { moment: Moment; nth: number } | undefined;
  private seen = 0;
  private resting = false;

  constructor(private readonly random: Random) {}

  strikes(moment: Moment, probability: number): boolean {
    return this.planned ? this.asPlanned(moment) : this.byChance(probability);
  }

  /** Whether something goes wrong by chance; never where a moment is planned. */
  byChance(probability: number): boolean {
    return !this.resting && !this.planned && this.random.chance(probability);
  }

  /** Whether this is the moment that was planned. */
  asPlanned(moment: Moment): boolean {
    if (this.resting || moment !== this.planned?.moment) return false;
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
