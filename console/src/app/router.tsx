import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  notFound,
  redirect,
  type ErrorComponentProps,
} from '@tanstack/react-router';
import type { QueryClient } from '@tanstack/react-query';
import { hasInstances, me } from '../data/api/queries.js';
import { deploySearch } from '../pages/deploy/search.js';
import { instanceSearch } from '../pages/instance/search.js';
import { instancesSearch } from '../pages/instances/search.js';
import { marketSearch } from '../pages/market/search.js';
import { billingSearch } from '../pages/billing/search.js';
import { keysSearch } from '../pages/keys/search.js';
import { auditSearch as operatedAuditSearch } from '../pages/operator/audit/search.js';
import { addMachineSearch } from '../pages/operator/machines/new/search.js';
import { payoutsSearch } from '../pages/operator/money/payouts/search.js';
import { revenueSearch } from '../pages/operator/money/revenue/search.js';
import { operatedInstancesSearch } from '../pages/operator/instances/search.js';
import { machinesSearch } from '../pages/operator/machines/search.js';
import { pricesSearch } from '../pages/operator/offers/prices/search.js';
import { controlPlaneSearch } from '../pages/operator/control-plane/search.js';
import { offersSearch } from '../pages/operator/offers/search.js';
import { organizationSearch } from '../pages/operator/organizations/organization/search.js';
import { organizationsSearch } from '../pages/operator/organizations/search.js';
import { usersSearch } from '../pages/operator/users/search.js';
import { templatesSearch } from '../pages/templates/search.js';
import { Page } from '../parts/layout/page.js';
import { Empty, ErrorBox, Skeleton } from '../parts/controls/states.js';
import { LinkButton } from '../parts/controls/button.js';
import { teamSearch } from '../pages/team/search.js';
import { auditSearch } from '../pages/team/audit/search.js';
import { endpointSearch } from '../pages/webhooks/endpoint/search.js';
import { webhooksSearch } from '../pages/webhooks/search.js';
import { Shell } from './shell/shell.js';

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: Shell,
  notFoundComponent: NothingHere,
});

/** Declares a page: its address, and the file whose default export it is. It is loaded when it is first gone to. */
const page = <const Path extends string>(path: Path, load: () => Promise<{ default: () => React.JSX.Element }>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load) });

/**
 * Returns a reader of the address for the router, which keeps what a reader leaves out as it stands in the address: so that is taken away
 * here, and a page gets nothing that its reader does not know.
 */
const only =
  <Search extends object>(read: (given: Record<string, unknown>) => Search) =>
  (given: Record<string, unknown>): Search => ({
    ...Object.fromEntries(Object.keys(given).map((name) => [name, undefined])),
    ...read(given),
  });

/** Tells whether the reader is an operator who has no instance. */
async function operatesOnly(queries: QueryClient): Promise<boolean> {
  const { user, active_organization_id } = await queries.query({ ...me, staleTime: 'static' });
  if (!user.is_operator) return false;
  return active_organization_id === null || !(await queries.query({ ...hasInstances, staleTime: 'static' }));
}

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: billingSearch,
  // The payment provider may lead back here.
  beforeLoad: async ({ context: { queries }, search: { checkout } }) => {
    if (checkout) throw redirect({ to: '/billing', search: { checkout }, replace: true });
    const isForOperators = await operatesOnly(queries).catch(() => false);
    throw redirect({ to: isForOperators ? '/operator' : '/instances', replace: true });
  },
});

const instance = createRoute({
  getParentRoute: () => root,
  path: '/instances/$id',
  validateSearch: only(instanceSearch),
  component: lazyRouteComponent(() => import('../pages/instance/page.js')),
});

const instancesPage = createRoute({
  getParentRoute: () => root,
  path: '/instances',
  validateSearch: instancesSearch,
  component: lazyRouteComponent(() => import('../pages/instances/page.js')),
});

const market = createRoute({
  getParentRoute: () => root,
  path: '/market',
  validateSearch: only(marketSearch),
  component: lazyRouteComponent(() => import('../pages/market/page.js')),
});

const deploy = createRoute({
  getParentRoute: () => root,
  path: '/deploy',
  validateSearch: only(deploySearch),
  component: lazyRouteComponent(() => import('../pages/deploy/page.js')),
});

const team = createRoute({
  getParentRoute: () => root,
  path: '/team',
  validateSearch: teamSearch,
  component: lazyRouteComponent(() => import('../pages/team/page.js')),
});

const auditLog = createRoute({
  getParentRoute: () => root,
  path: '/team/audit',
  validateSearch: only(auditSearch),
  component: lazyRouteComponent(() => import('../pages/team/audit/page.js')),
});

const webhook = createRoute({
  getParentRoute: () => root,
  path: '/webhooks/$id',
  validateSearch: only(endpointSearch),
  component: lazyRouteComponent(() => import('../pages/webhooks/endpoint/page.js')),
});

const templates = createRoute({
  getParentRoute: () => root,
  path: '/templates',
  validateSearch: only(templatesSearch),
  component: lazyRouteComponent(() => import('../pages/templates/page.js')),
});

const billing = createRoute({
  getParentRoute: () => root,
  path: '/billing',
  validateSearch: only(billingSearch),
  component: lazyRouteComponent(() => import('../pages/billing/page.js')),
});

const webhooks = createRoute({
  getParentRoute: () => root,
  path: '/webhooks',
  validateSearch: only(webhooksSearch),
  component: lazyRouteComponent(() => import('../pages/webhooks/page.js')),
});

const keys = createRoute({
  getParentRoute: () => root,
  path: '/keys',
  validateSearch: only(keysSearch),
  component: lazyRouteComponent(() => import('../pages/keys/page.js')),
});

/** Shows pages to operators; to others there is nothing at their addresses, and nothing of them is loaded. */
const operator = createRoute({
  getParentRoute: () => root,
  path: '/operator',
  beforeLoad: async ({ context: { queries } }) => {
    const { user } = await queries.query({ ...me, staleTime: 'static' });
    if (!user.is_operator) throw notFound();
  },
});

/** Declares a page for operators: its address after `/operator`, and the file whose default export it is. */
const operatorPage = <const Path extends string>(
  path: Path,
  load: () => Promise<{ default: () => React.JSX.Element }>,
) => createRoute({ getParentRoute: () => operator, path, component: lazyRouteComponent(load) });

const operatedOffers = createRoute({
  getParentRoute: () => operator,
  path: '/offers',
  validateSearch: only(offersSearch),
  component: lazyRouteComponent(() => import('../pages/operator/offers/page.js')),
});

const machines = createRoute({
  getParentRoute: () => operator,
  path: '/machines',
  validateSearch: machinesSearch,
  component: lazyRouteComponent(() => import('../pages/operator/machines/page.js')),
});

const operatedInstances = createRoute({
  getParentRoute: () => operator,
  path: '/instances',
  validateSearch: only(operatedInstancesSearch),
  component: lazyRouteComponent(() => import('../pages/operator/instances/page.js')),
});

const prices = createRoute({
  getParentRoute: () => operator,
  path: '/offers/prices',
  validateSearch: pricesSearch,
  component: lazyRouteComponent(() => import('../pages/operator/offers/prices/page.js')),
});

const operatedOrganizations = createRoute({
  getParentRoute: () => operator,
  path: '/organizations',
  validateSearch: organizationsSearch,
  component: lazyRouteComponent(() => import('../pages/operator/organizations/page.js')),
});

const operatedOrganization = createRoute({
  getParentRoute: () => operator,
  path: '/organizations/$id',
  validateSearch: organizationSearch,
  component: lazyRouteComponent(() => import('../pages/operator/organizations/organization/page.js')),
});

const users = createRoute({
  getParentRoute: () => operator,
  path: '/users',
  validateSearch: usersSearch,
  component: lazyRouteComponent(() => import('../pages/operator/users/page.js')),
});

const payouts = createRoute({
  getParentRoute: () => operator,
  path: '/money/payouts',
  validateSearch: only(payoutsSearch),
  component: lazyRouteComponent(() => import('../pages/operator/money/payouts/page.js')),
});

const machineRevenue = createRoute({
  getParentRoute: () => operator,
  path: '/money/revenue',
  validateSearch: only(revenueSearch),
  component: lazyRouteComponent(() => import('../pages/operator/money/revenue/page.js')),
});

const controlPlane = createRoute({
  getParentRoute: () => operator,
  path: '/control-plane',
  validateSearch: controlPlaneSearch,
  component: lazyRouteComponent(() => import('../pages/operator/control-plane/page.js')),
});

const addMachine = createRoute({
  getParentRoute: () => operator,
  path: '/machines/new',
  validateSearch: addMachineSearch,
  component: lazyRouteComponent(() => import('../pages/operator/machines/new/page.js')),
});

const operatedAudit = createRoute({
  getParentRoute: () => operator,
  path: '/audit',
  validateSearch: only(operatedAuditSearch),
  component: lazyRouteComponent(() => import('../pages/operator/audit/page.js')),
});

const operatorPages = [
  operatorPage('/', () => import('../pages/operator/page.js')),
  machines,
  addMachine,
  operatorPage('/machines/$id', () => import('../pages/operator/machines/machine/page.js')),
  operatedInstances,
  operatedOffers,
  prices,
  operatorPage('/templates', () => import('../pages/operator/templates/page.js')),
  operatorPage('/templates/new', () => import('../pages/operator/templates/new/page.js')),
  operatorPage('/templates/$id', () => import('../pages/operator/templates/template/page.js')),
  operatedOrganizations,
  operatedOrganization,
  users,
  operatorPage('/users/sign-ins', () => import('../pages/operator/users/sign-ins/page.js')),
  operatorPage('/users/sign-ins/new', () => import('../pages/operator/users/sign-ins/new/page.js')),
  operatorPage('/users/sign-ins/$id', () => import('../pages/operator/users/sign-ins/sign-in/page.js')),
  operatorPage('/money', () => import('../pages/operator/money/page.js')),
  payouts,
  machineRevenue,
  operatorPage('/ignored-stops', () => import('../pages/operator/ignored-stops/page.js')),
  controlPlane,
  operatorPage('/quarantine', () => import('../pages/operator/quarantine/page.js')),
  operatedAudit,
] as const;

const routes = [
  home,
  deploy,
  instance,
  market,
  instancesPage,
  templates,
  page('/templates/new', () => import('../pages/templates/editor/new-page.js')),
  page('/templates/$id', () => import('../pages/templates/template/page.js')),
  page('/templates/$id/edit', () => import('../pages/templates/editor/edit-page.js')),
  billing,
  keys,
  team,
  auditLog,
  webhooks,
  webhook,
  page('/profile', () => import('../pages/profile/page.js')),
  operator.addChildren(operatorPages),
] as const;

/** Every part in each of its states, for those who build the console. */
const partsPage = page('/__parts', () => import('../pages/parts/page.js'));

export const router = createRouter({
  // Given once the store of what was read is made.
  context: { queries: undefined as unknown as QueryClient },
  routeTree: root.addChildren(import.meta.env.DEV ? [...routes, partsPage] : [...routes]),
  defaultPreload: 'intent',
  // Otherwise what a page does not know would be kept beside what it does, such as a tab that is none.
  search: { strict: true },
  defaultPendingComponent: () => <Skeleton rows={6} />,
  defaultErrorComponent: Failed,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

function NothingHere() {
  return (
    <Page title="Nothing here">
      <Empty
        title="There is no page at this address"
        action={<LinkButton to="/instances">Go to the instances</LinkButton>}
      >
        The address is wrong, or what it led to is gone.
      </Empty>
    </Page>
  );
}

function Failed({ error }: ErrorComponentProps) {
  return (
    <Page title="This page has failed">
      <ErrorBox error={error} retry={() => location.reload()} />
    </Page>
  );
}
