import { dayIn, known, periodOf, textIn, wordIn } from '../../../data/forms/address.js';
import { ACTIONS, type Action } from './actions.js';

/** What the address of the operators' audit log chooses. */
export interface AuditSearch {
  action?: Action;
  /** The e-mail address of an operator. */
  by?: string;
  /** The id of what it was done to. */
  of?: string;
  /** Days in UTC, as YYYY-MM-DD: the first and the last. */
  from?: string;
  to?: string;
}

/** Reads the address; what it does not know is left out. */
export function auditSearch(given: Record<string, unknown>): AuditSearch {
  return known({
    action: wordIn(Object.keys(ACTIONS) as Action[], given['action']),
    by: textIn(given['by'], 254),
    of: textIn(given['of'], 64),
    from: dayIn(given['from']),
    to: dayIn(given['to']),
  });
}

/** Returns the choice as the API takes it. */
export function filterOf({ action, by, of, from, to }: AuditSearch) {
  return known({
    action,
    actor_email: by,
    subject: of,
    ...periodOf({
      from,
      to,
    }),
  });
}
