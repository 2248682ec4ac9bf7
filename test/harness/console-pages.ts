import { readFileSync } from 'node:fs';

const ROUTER = 'console/src/app/router.tsx';

/** Ids for addresses. Without one, a page of it is left out. */
export interface PageIds {
  offer?: string;
  template?: string;
  ownTemplate?: string;
  instance?: string;
  webhook?: string;
  machine?: string;
  organization?: string;
  /** The address of a user. */
  user?: string;
  /** The word of a company that signs in. */
  company?: string;
  systemTemplate?: string;
}

/** An address of a page, and the text of a heading that is there once it has read everything. */
export interface PageAddress {
  /** The address as the router declares it. */
  route: string;
  path: string;
  heading: string;
  /** Whether it asks the API for nothing before somebody does something. */
  readsNothing: boolean;
}

type Addresses = (ids: PageIds) => readonly (readonly [path: string, heading: string])[];

const at =
  (...addresses: [path: string, heading: string][]): Addresses =>
  () =>
    addresses;

/** Addresses for each tab of an object that has a page. */
const of =
  (id: keyof PageIds, pathOf: (id: string) => readonly string[], heading: string): Addresses =>
  ({ [id]: its }) =>
    its === undefined ? [] : pathOf(its).map((path) => [path, heading]);

const withTabs = (path: string, ...tabs: string[]) => tabs.map((tab) => `${path}?tab=${tab}`);

/** Every route of the console for renters. */
const RENTERS: Readonly<Record<string, Addresses>> = {
  '/': at(['/', 'Instances']),
  '/market': at(['/market', 'Market']),
  '/deploy': ({ offer, template }) => [[`/deploy?offer=${offer}&template=${template}`, 'Summary']],
  '/instances': at(['/instances', 'Instances']),
  '/instances/$id': of(
    'instance',
    (id) => withTabs(`/instances/${id}`, 'timeline', 'logs', 'usage', 'cost', 'settings'),
    'a-label',
  ),
  '/templates': at(['/templates', 'Templates'], ['/templates?tab=public', 'Templates']),
  '/templates/new': at(['/templates/new', 'New template']),
  '/templates/$id': of('template', (id) => [`/templates/${id}`], 'vLLM'),
  '/templates/$id/edit': of('ownTemplate', (id) => [`/templates/${id}/edit`], 'Edit template'),
  '/billing': at(
    ['/billing', 'Caps of the organization'],
    ['/billing?tab=spend&by=label', 'Billing'],
    ['/billing?tab=transactions', 'Billing'],
  ),
  '/keys': at(['/keys', 'API keys of the organization']),
  '/team': at(['/team', 'Invitations']),
  '/team/audit': at(['/team/audit', 'Team']),
  '/webhooks': at(['/webhooks', 'Webhooks']),
  '/webhooks/$id': of('webhook', (id) => [`/webhooks/${id}`], 'Deliveries'),
  '/profile': at(['/profile', 'Where you are signed in']),
};

/** Every route of the console for operators. */
const OPERATORS: Readonly<Record<string, Addresses>> = {
  '/operator': at(['/operator', 'Operator']),
  '/operator/machines': at(['/operator/machines', 'Machines']),
  '/operator/machines/new': at(['/operator/machines/new', 'Add a machine']),
  '/operator/machines/$id': of('machine', (id) => [`/operator/machines/${id}`], 'Instances'),
  '/operator/instances': at(['/operator/instances', 'All instances']),
  '/operator/offers': at(['/operator/offers', 'Offers']),
  '/operator/offers/prices': at(['/operator/offers/prices', 'Prices']),
  '/operator/templates': at(['/operator/templates', 'System templates']),
  '/operator/templates/new': at(['/operator/templates/new', 'New system template']),
  '/operator/templates/$id': of('systemTemplate', (id) => [`/operator/templates/${id}`], 'vLLM'),
  '/operator/organizations': at(['/operator/organizations', 'Organizations']),
  '/operator/organizations/$id': of(
    'organization',
    (id) =>
      withTabs(`/operator/organizations/${id}`, 'members', 'instances', 'ledger', 'keys', 'templates', 'machines'),
    'organization',
  ),
  '/operator/users': ({ user }) => [
    ['/operator/users', 'Users'],
    ...(user === undefined ? [] : [[`/operator/users?email=${user}`, 'Acts'] as const]),
  ],
  '/operator/users/sign-ins': at(['/operator/users/sign-ins', 'Companies’ sign-ins']),
  '/operator/users/sign-ins/new': at(['/operator/users/sign-ins/new', 'Add a company’s sign-in']),
  '/operator/users/sign-ins/$id': of('company', (id) => [`/operator/users/sign-ins/${id}`], 'Acme'),
  '/operator/money': at(['/operator/money', 'Money']),
  '/operator/money/payouts': at(['/operator/money/payouts', 'Payouts']),
  '/operator/money/revenue': at(['/operator/money/revenue', 'Revenue by machine']),
  '/operator/ignored-stops': at(['/operator/ignored-stops', 'Ignored stops']),
  '/operator/control-plane': at(...tabsOf('/operator/control-plane', 'Control plane', ['workers', 'settings'])),
  '/operator/quarantine': at(['/operator/quarantine', 'Quarantine']),
  '/operator/audit': at(['/operator/audit', 'Audit log']),
};

function tabsOf(path: string, heading: string, tabs: string[]): [string, string][] {
  return [path, ...withTabs(path, ...tabs)].map((each) => [each, heading]);
}

/** Pages that ask the API for nothing of their own. */
const READ_NOTHING = [
  '/templates/new',
  '/operator/templates/new',
  '/operator/users/sign-ins/new',
  '/operator/money/payouts',
];

export const rentersPages = (ids: PageIds) => addressesIn(RENTERS, ids);
export const operatorsPages = (ids: PageIds) => addressesIn(OPERATORS, ids);

function addressesIn(routes: Readonly<Record<string, Addresses>>, ids: PageIds): PageAddress[] {
  return Object.entries(routes).flatMap(([route, addresses]) =>
    addresses(ids).map(([path, heading]) => ({ route, path, heading, readsNothing: READ_NOTHING.includes(route) })),
  );
}

/** Returns the first address of each route. */
export const onePerRoute = (pages: readonly PageAddress[]) =>
  pages.filter(({ route }, index) => pages.findIndex((other) => other.route === route) === index);

/** Returns the other addresses of each route: its tabs. */
export function furtherPerRoute(pages: readonly PageAddress[]): PageAddress[] {
  const first = onePerRoute(pages);
  return pages.filter((page) => !first.includes(page));
}

/** Returns the routes that the tests know. */
export const testedRoutes = () => [...Object.keys(RENTERS), ...Object.keys(OPERATORS)].sort();

/** Returns the routes that the router declares. Throws if it declares one in a way that is not known here. */
export function declaredRoutes(): string[] {
  const source = readFileSync(ROUTER, 'utf8');
  const routes = [...source.matchAll(/createRoute\(\{\s*getParentRoute: \(\) => (root|operator),\s*path: '([^']+)'/g)];
  const pages = [...source.matchAll(/\b(page|operatorPage)\('([^']+)'/g)];
  // Two more calls are those that make the pages.
  if (source.match(/createRoute\(/g)?.length !== routes.length + 2)
    throw new Error(`${ROUTER} has a route without path`);
  const found = [...routes, ...pages].map(([, parent = '', path = '']) =>
    parent.startsWith('operator') ? `/operator${path}`.replace(/\/$/, '') : path,
  );
  return [...new Set(found)].filter((route) => route !== '/__parts').sort();
}
