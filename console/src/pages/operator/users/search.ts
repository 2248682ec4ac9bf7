/** Whom the page of users shows. */
export interface UsersSearch {
  /** The address of one user. */
  email?: string;
}

const LONGEST = 254;

/** Reads the address; what it does not know is left out. */
export function usersSearch({ email }: Record<string, unknown>): UsersSearch {
  return typeof email === 'string' && email !== '' && email.length <= LONGEST ? { email } : {};
}
