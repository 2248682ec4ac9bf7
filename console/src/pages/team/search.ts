/** What the address of the team says: which form is open. */
export interface TeamSearch {
  invite?: true;
  /** The id of the member who gets another role. */
  role?: string;
}

/** Reads the address; what it does not know is left out. */
export function teamSearch({ invite, role }: Record<string, unknown>): TeamSearch {
  return { ...(invite === true ? { invite } : {}), ...(typeof role === 'string' && role !== '' ? { role } : {}) };
}
