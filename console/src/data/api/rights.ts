import { useQuery } from '@tanstack/react-query';
import type { Me, Role } from './models.js';
import { me } from './queries.js';

/** What a member does: `read`, everything but money, which every member reads; `change`, what the organization has; `change_money`, pay and set caps; `administer`, also keys of the team. */
export type Right = 'read' | 'change' | 'change_money' | 'administer';

const ROLES_WITH: Readonly<Record<Right, readonly Role[]>> = {
  read: ['admin', 'member', 'viewer'],
  change: ['admin', 'member'],
  change_money: ['admin', 'billing'],
  administer: ['admin'],
};

/** Tells whether the user has a right in the organization that is shown. The control plane decides; pages leave out what it would refuse. */
export function may(me: Me | undefined, right: Right): boolean {
  const membership = me?.memberships.find(({ organization_id }) => organization_id === me.active_organization_id);
  return membership !== undefined && ROLES_WITH[right].includes(membership.role);
}

/** Tells the same of the present user; true also until it is known who that is, so that nothing jumps for those who have the right. */
export function useMay(right: Right): boolean {
  const { data } = useQuery(me);
  return data === undefined || may(data, right);
}
