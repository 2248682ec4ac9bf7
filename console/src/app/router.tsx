import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  type ErrorComponentProps,
} from '@tanstack/react-router';
import { billingSearch } from '../pages/billing/search.js';
import { keysSearch } from '../pages/keys/search.js';
import { templatesSearch } from '../pages/templates/search.js';
import { Page } from '../parts/page.js';
import { Empty, ErrorBox, Skeleton } from '../parts/states.js';
import { LinkButton } from '../parts/button.js';
import { Shell } from './shell/shell.js';

const root = createRootRoute({ component: Shell, notFoundComponent: NothingHere });

/** Declares a page: its address, and the file that exports it as `Page`. It is loaded when it is first gone to. */
const page = <const Path extends string>(path: Path, load: () => Promise<{ default: () => React.JSX.Element }>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load) });

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/instances', replace: true });
  },
});

const templates = createRoute({
  getParentRoute: () => root,
  path: '/templates',
  validateSearch: templatesSearch,
  component: lazyRouteComponent(() => import('../pages/templates/page.js')),
});

const billing = createRoute({
  getParentRoute: () => root,
  path: '/billing',
  validateSearch: billingSearch,
  component: lazyRouteComponent(() => import('../pages/billing/page.js')),
});

const keys = createRoute({
  getParentRoute: () => root,
  path: '/keys',
  validateSearch: keysSearch,
  component: lazyRouteComponent(() => import('../pages/keys/page.js')),
});

const routes = [
  home,
  page('/instances', () => import('../pages/instances/page.js')),
  page('/market', () => import('../pages/market/page.js')),
  templates,
  page('/templates/new', () => import('../pages/templates/editor/new-page.js')),
  page('/templates/$id', () => import('../pages/templates/template/page.js')),
  page('/templates/$id/edit', () => import('../pages/templates/editor/edit-page.js')),
  billing,
  keys,
  page('/team', () => import('../pages/team/page.js')),
  page('/webhooks', () => import('../pages/webhooks/page.js')),
  page('/profile', () => import('../pages/profile/page.js')),
  page('/operator', () => import('../pages/operator/page.js')),
] as const;

/** Every part in each of its states, for those who build the console. */
const partsPage = page('/__parts', () => import('../pages/parts/page.js'));

export const router = createRouter({
  routeTree: root.addChildren(import.meta.env.DEV ? [...routes, partsPage] : [...routes]),
  defaultPreload: 'intent',
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
