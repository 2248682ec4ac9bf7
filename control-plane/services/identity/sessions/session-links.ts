import { recent } from '../../../../shared/recent.js';

interface Link {
  hash: string;
  /** By the monotonic clock: nobody prolongs a link by setting the clock back. */
  endsAt: number;
}

const MOST_LINKS = 10_000;

/**
 * Makes the memory of the links with which browsers sign in, by the session that made them, hashed: after a restart, people make another
 * one.
 */
export const makeSessionLinks = () => recent<Link>(MOST_LINKS);

export interface HasSessionLinks {
  sessionLinks: ReturnType<typeof makeSessionLinks>;
}
