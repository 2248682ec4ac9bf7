import { readFileSync } from 'node:fs';
import { eventually } from '../../scripts/eventually.js';
import type { ConsoleWindow } from './console.js';

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
  systemTemplate?: string;
}

/** An address of a page, and the text of a heading that is there once it has read everything. */
export interface PageAddress {
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
  '/templates/$id/edit': of('ownTemplate', (id) => [`/templates/${id}/edit`], 'Change'),
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
  '/operator/offers': at(['/operator/offers', 'Offers']),
  '/operator/offers/prices': at(['/operator/offers/prices', 'Prices']),
  '/operator/templates': at(['/operator/templates', 'System templates']),
  '/operator/templates/new': at(['/operator/templates/new', 'New system template']),
  '/operator/templates/$id': of('systemTemplate', (id) => [`/operator/templates/${id}`], 'vLLM'),
  '/operator/organizations': at(['/operator/organizations', 'Organizations']),
  '/operator/organizations/$id': of('organization', (id) => [`/operator/organizations/${id}`], 'organization'),
  '/operator/users': at(['/operator/users', 'Users']),
  '/operator/ignored-stops': at(['/operator/ignored-stops', 'Ignored stops']),
  '/operator/control-plane': at(...tabsOf('/operator/control-plane', 'Control plane', ['workers', 'settings'])),
  '/operator/quarantine': at(['/operator/quarantine', 'Quarantine']),
  '/operator/audit': at(['/operator/audit', 'Audit log']),
};

function tabsOf(path: string, heading: string, tabs: string[]): [string, string][] {
  return [path, ...withTabs(path, ...tabs)].map((each) => [each, heading]);
}

/** Pages that ask the API for nothing of their own. */
const READ_NOTHING = ['/templates/new', '/operator/templates/new'];

export const rentersPages = (ids: PageIds) => addressesIn(RENTERS, ids);
export const operatorsPages = (ids: PageIds) => addressesIn(OPERATORS, ids);

function addressesIn(routes: Readonly<Record<string, Addresses>>, ids: PageIds): PageAddress[] {
  return Object.entries(routes).flatMap(([route, addresses]) =>
    addresses(ids).map(([path, heading]) => ({ path, heading, readsNothing: READ_NOTHING.includes(route) })),
  );
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

/** Throws unless nothing of a page is still being read, nothing has failed, and nothing is wider than a phone. */
export async function isWhole({ page }: ConsoleWindow, path: string): Promise<void> {
  await eventually(`${path} to be read`, async () => (await page.locator('main [aria-label^=Loading]').count()) === 0);
  const alerts = await page.locator('main [role=alert]').allTextContents();
  const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
  if (alerts.length > 0 || width > PHONE) throw new Error(`${path}: ${alerts.join()} at a width of ${width}`);
}

export const PHONE = 360;

/** Opens each page as wide as a phone. Throws unless each is whole. */
export async function visitAll(window: ConsoleWindow, pages: readonly PageAddress[]): Promise<void> {
  for (const { path, heading } of pages) {
    await window.page.goto(path);
    await window.page.getByRole('heading', { name: heading }).first().waitFor();
    await isWhole(window, path);
  }
}

const FAILURES = [
  { status: 500, code: 'INTERNAL', message: 'something went wrong' },
  // It is sent again, at once.
  { status: 503, code: 'UNAVAILABLE', message: 'the control plane is starting', headers: { 'Retry-After': '0' } },
];

/**
 * Opens each page while the API fails for what `reads` matches. Throws unless it says so with the id of a request, keeps its layout, and
 * goes on when the API works again.
 */
export async function visitWhileFailing(
  window: ConsoleWindow,
  pages: readonly PageAddress[],
  reads: RegExp,
): Promise<void> {
  const { page } = window;
  window.expectComplaints(/500|503/);
  for (const [index, { path }] of pages.filter(({ readsNothing }) => !readsNothing).entries()) {
    const { status, headers = {}, ...failure } = FAILURES[index % FAILURES.length] ?? { status: 500 };
    const body = JSON.stringify({ ...failure, request_id: `request-${index}` });
    await page.route(reads, (route) => route.fulfill({ status, headers, contentType: 'application/json', body }));
    await page.goto(path);
    await page.locator('main h1').waitFor();
    await page.locator('main [role=alert]').first().getByText(`request-${index}`).waitFor();
    const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
    if (width > PHONE) throw new Error(`${path} is ${width} wide`);
    await page.unroute(reads);
    await eventually(`${path} to go on`, async () => {
      const again = page.locator('main').getByRole('button', { name: 'Try again' }).first();
      if ((await again.count()) > 0) await again.click({ timeout: 1_000 }).catch(() => undefined);
      return (await page.locator('main [role=alert]').count()) === 0;
    });
  }
}
