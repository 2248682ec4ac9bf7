import type { Me, Role } from './models.js';

/** What each role may do, in the words of the console. */
export const ROLES: readonly { value: Role; label: string; may: string }[] = [
  { value: 'admin', label: 'admin', may: 'does everything, and decides who else may' },
  { value: 'member', label: 'member', may: 'uses and changes instances and templates, and makes API keys' },
  { value: 'viewer', label: 'viewer', may: 'only reads, without secrets' },
  { value: 'billing', label: 'billing', may: 'reads about money, pays and sets caps' },
];

/** Returns the role of the user in the organization that is shown; undefined: there is none. */
export function roleOf({ memberships, active_organization_id }: Me): Role | undefined {
  return memberships.find(({ organization_id }) => organization_id === active_organization_id)?.role;
}

/** Tells whether personal API keys are revoked when a member with one role gets another. */
export function isDemotion(before: Role, after: Role): boolean {
  const hasKeys = (role: Role) => role === 'admin' || role === 'member';
  return hasKeys(before) && !hasKeys(after);
}
