import type { IconName } from './shell/icon.js';

/** The pages of the rail, in their order; a phone shows the first four. Those `forReaders` are closed to the role billing. */
export const PAGES = [
  { to: '/market', title: 'Market', icon: 'market', forReaders: true },
  { to: '/instances', title: 'Instances', icon: 'instances', forReaders: true },
  { to: '/templates', title: 'Templates', icon: 'templates', forReaders: true },
  { to: '/billing', title: 'Billing', icon: 'billing', forReaders: false },
  { to: '/team', title: 'Team', icon: 'team', forReaders: false },
  { to: '/profile', title: 'Account', icon: 'account', forReaders: false },
] as const satisfies readonly { to: string; title: string; icon: IconName; forReaders: boolean }[];

/** Tells whether the page at a path is closed to the role billing, also one that is not in the rail. */
export function isForReaders(path: string): boolean {
  return /^\/(?:market|deploy|instances|templates)(?:\/|$)/.test(path);
}

/** Tells whether the page at a path shows what belongs to an organization. The others are about the reader, and for operators. */
export function isOfOrganization(path: string): boolean {
  return !/^\/(?:profile|operator)(?:\/|$)/.test(path);
}

/** Pages beside those of the rail: they stand in the menu of the organization. */
export const MORE_PAGES = [
  { to: '/keys', title: 'Keys' },
  { to: '/webhooks', title: 'Webhooks' },
] as const;

/** The pages for operators: they stand in the rail, and on a phone in the menu. */
export const OPERATOR_PAGES = [
  { to: '/operator', title: 'Overview', isExact: true },
  { to: '/operator/machines', title: 'Machines', isExact: false },
  { to: '/operator/instances', title: 'All instances', isExact: false },
  { to: '/operator/offers', title: 'Offers', isExact: false },
  { to: '/operator/templates', title: 'System templates', isExact: false },
  { to: '/operator/organizations', title: 'Organizations', isExact: false },
  { to: '/operator/users', title: 'Users', isExact: false },
  { to: '/operator/money', title: 'Money', isExact: false },
  { to: '/operator/quarantine', title: 'Quarantine', isExact: false },
  { to: '/operator/control-plane', title: 'Control plane', isExact: false },
  { to: '/operator/audit', title: 'Audit log', isExact: false },
] as const;
