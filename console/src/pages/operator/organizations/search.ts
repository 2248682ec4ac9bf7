import { wordIn } from '../../../data/forms/address.js';
import type { OrganizationNeed } from '../models.js';
import { ORGANIZATION_NEEDS } from '../listed-needs.js';

/** What the list of organizations is asked for. */
export interface OrganizationsSearch {
  /** The beginning of a name or of an e-mail address. */
  find?: string;
  /** Look for the address of a member, also without an `@`. */
  by?: 'member';
  /** Only organizations that need an act for this reason; not with `find`. */
  need?: OrganizationNeed;
}

const LONGEST = 254;
const NEEDS = Object.keys(ORGANIZATION_NEEDS) as OrganizationNeed[];

/** Reads the address; what it does not know is left out. */
export function organizationsSearch({ find, by, need: given }: Record<string, unknown>): OrganizationsSearch {
  const need = wordIn(NEEDS, given);
  if (need !== undefined) return { need };
  // Digits alone are a number to the address.
  const text = typeof find === 'number' ? String(find) : find;
  if (typeof text !== 'string' || text === '' || text.length > LONGEST) return {};
  return { find: text, ...(by === 'member' ? { by } : {}) };
}

/** Returns how the API is asked for it. */
export function filterOf({ find, by, need }: OrganizationsSearch): {
  name?: string;
  member_email?: string;
  need?: OrganizationNeed;
} {
  if (need !== undefined) return { need };
  if (find === undefined) return {};
  return by === 'member' || find.includes('@') ? { member_email: find } : { name: find };
}
