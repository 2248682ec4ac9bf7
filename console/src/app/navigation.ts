import type { IconName } from './shell/icon.js';

/** The pages of the rail, in their order; a phone shows the first four. */
export const PAGES = [
  { to: '/market', title: 'Market', icon: 'market' },
  { to: '/instances', title: 'Instances', icon: 'instances' },
  { to: '/templates', title: 'Templates', icon: 'templates' },
  { to: '/billing', title: 'Billing', icon: 'billing' },
  { to: '/team', title: 'Team', icon: 'team' },
  { to: '/profile', title: 'Account', icon: 'account' },
] as const satisfies readonly { to: string; title: string; icon: IconName }[];

/** Pages beside those of the rail: they stand in the menu of the organization. */
export const MORE_PAGES = [
  { to: '/keys', title: 'Keys' },
  { to: '/webhooks', title: 'Webhooks' },
] as const;
