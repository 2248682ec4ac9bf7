import { initial } from './0001-initial.js';

/** Numbered by position, forward only: what has been released never changes. */
export const migrations: readonly { name: string; sql: string }[] = [{ name: '0001-initial', sql: initial }];
