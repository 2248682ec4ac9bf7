import { initial } from './0001-initial.js';

export interface Migration {
  name: string;
  sql: string;
}

/** Numbered by position, forward only: what has been released never changes. */
export const migrations: readonly Migration[] = [{ name: '0001-initial', sql: initial }];
