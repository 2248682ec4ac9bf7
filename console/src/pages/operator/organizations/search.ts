/** What the list of organizations is asked for. */
export interface OrganizationsSearch {
  /** The beginning of a name or of an e-mail address. */
  find?: string;
  /** Look for the address of a member, also without an `@`. */
  by?: 'member';
}

const LONGEST = 254;

/** Reads the address; what it does not know is left out. */
export function organizationsSearch({ find, by }: Record<string, unknown>): OrganizationsSearch {
  // Digits alone are a number to the address.
  const text = typeof find === 'number' ? String(find) : find;
  if (typeof text !== 'string' || text === '' || text.length > LONGEST) return {};
  return { find: text, ...(by === 'member' ? { by } : {}) };
}

/** Returns how the API is asked for it. */
export function filterOf({ find, by }: OrganizationsSearch): { name?: string; member_email?: string } {
  if (find === undefined) return {};
  return by === 'member' || find.includes('@') ? { member_email: find } : { name: find };
}
