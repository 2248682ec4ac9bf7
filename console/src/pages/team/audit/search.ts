import type { AuditFilter } from '../../../data/models.js';
import { ACTIONS, ACTORS } from './words.js';

/** What the address of the audit log chooses. */
export interface AuditSearch {
  by?: NonNullable<AuditFilter['actor_kind']>;
  action?: NonNullable<AuditFilter['action']>;
}

/** Reads the address; what it does not know is left out. */
export function auditSearch({ by, action }: Record<string, unknown>): AuditSearch {
  return {
    ...(isOf(ACTORS, by) ? { by } : {}),
    ...(isOf(ACTIONS, action) ? { action } : {}),
  };
}

function isOf<Word extends string>(words: Readonly<Record<Word, unknown>>, given: unknown): given is Word {
  return typeof given === 'string' && Object.hasOwn(words, given);
}

/** Returns the choice as the API takes it. */
export function filterOf({ by, action }: AuditSearch): AuditFilter {
  return { ...(by === undefined ? {} : { actor_kind: by }), ...(action === undefined ? {} : { action }) };
}
