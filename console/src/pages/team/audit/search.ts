import { dayIn, known, periodOf, textIn, wordIn } from '../../../data/forms/address.js';
import type { AuditFilter } from '../../../data/api/models.js';
import { ACTIONS, ACTORS } from './words.js';

/** What the address of the audit log chooses. */
export interface AuditSearch {
  by?: NonNullable<AuditFilter['actor_kind']>;
  action?: NonNullable<AuditFilter['action']>;
  /** The id of a user or an API key. */
  who?: string;
  /** Days in UTC, as YYYY-MM-DD: the first and the last. */
  from?: string;
  to?: string;
}

/** Reads the address; what it does not know is left out. */
export function auditSearch(given: Record<string, unknown>): AuditSearch {
  return known({
    by: wordIn(namesOf(ACTORS), given['by']),
    action: wordIn(namesOf(ACTIONS), given['action']),
    who: textIn(given['who'], 64),
    from: dayIn(given['from']),
    to: dayIn(given['to']),
  });
}

/** Returns the choice as the API takes it. */
export function filterOf({ by, action, who, from, to }: AuditSearch): AuditFilter {
  return known({ actor_kind: by, action, actor_id: who, ...periodOf({ from, to }) });
}

function namesOf<Name extends string>(words: Readonly<Record<Name, unknown>>): Name[] {
  return Object.keys(words) as Name[];
}
