import type { LinkProps } from '@tanstack/react-router';
import type { IconName } from './shell/icon.js';

/** The pages of the rail, in their order; a phone shows the first four. Those `forReaders` have nothing for the role billing. */
export const PAGES = [
  { to: '/market', title: 'Market', icon: 'market', forReaders: true },
  { to: '/instances', title: 'Instances', icon: 'instances', forReaders: true },
  { to: '/templates', title: 'Templates', icon: 'templates', forReaders: true },
  { to: '/billing', title: 'Billing', icon: 'billing', forReaders: false },
  { to: '/team', title: 'Team', icon: 'team', forReaders: false },
  { to: '/keys', title: 'Keys', icon: 'keys', forReaders: false },
  { to: '/webhooks', title: 'Webhooks', icon: 'webhooks', forReaders: true },
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

/** Tells whether a page belongs to an entry of the rail with another address: a deploy begins at the market. */
export function belongsTo(entry: (typeof PAGES)[number]['to'], path: string): boolean {
  return entry === '/market' && /^\/deploy(?:\/|$)/.test(path);
}

/** Tells whether the page at a path is for operators. */
export function isForOperators(path: string): boolean {
  return /^\/operator(?:\/|$)/.test(path);
}

interface OperatorPage {
  to: `/operator${string}` & LinkProps['to'];
  title: string;
  /** Only at its own address, not below it. */
  isExact?: true;
  /** Another address whose page is a tab of it. */
  tab?: string;
  /** In the bar of a phone, while a page for operators is shown. */
  icon?: IconName;
}

/** The pages for operators: they stand in the rail, and on a phone in the menu. */
export const OPERATOR_PAGES: readonly OperatorPage[] = [
  { to: '/operator', title: 'Overview', isExact: true, icon: 'overview' },
  { to: '/operator/machines', title: 'Machines', icon: 'machines' },
  { to: '/operator/instances', title: 'All instances', tab: '/operator/ignored-stops', icon: 'instances' },
  { to: '/operator/offers', title: 'Offers' },
  { to: '/operator/templates', title: 'System templates' },
  { to: '/operator/organizations', title: 'Organizations', icon: 'team' },
  { to: '/operator/users', title: 'Users' },
  { to: '/operator/money', title: 'Money' },
  { to: '/operator/quarantine', title: 'Quarantine' },
  { to: '/operator/control-plane', title: 'Control plane' },
  { to: '/operator/audit', title: 'Audit log' },
];
