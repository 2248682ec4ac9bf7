import { recent } from '../../../../shared/recent.js';
import { oncePer } from '../../../store/remembered.js';
import type { Core } from '../../system/platform.js';

interface Link {
  hash: string;
  /** By the monotonic clock: nobody prolongs a link by setting the clock back. */
  endsAt: number;
}

const MOST_LINKS = 10_000;

/**
 * The links with which browsers sign in, by the session that made them. They are in memory, hashed: after a restart, people make another
 * one.
 */
export const linksOf = oncePer((_core: Core) => recent<Link>(MOST_LINKS));
