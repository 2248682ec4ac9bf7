import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef } from 'react';
import type { Me } from '../../data/api/models.js';
import { hasLinkToSay } from '../../data/api/organization.js';
import { me } from '../../data/api/queries.js';
import { useMay } from '../../data/api/rights.js';
import { classNames } from '../../parts/controls/class-names.js';
import { OnlyFor } from '../../parts/controls/only-for.js';
import { Page } from '../../parts/layout/page.js';
import { Skeleton } from '../../parts/controls/states.js';
import { say } from '../../parts/controls/toast.js';
import { belongsTo, isForOperators, isForReaders, isOfOrganization, OPERATOR_PAGES, PAGES } from '../navigation.js';
import { BalanceLine } from './balance-line.js';
import { ConnectionLine } from './connection-line.js';
import { Icon } from './icon.js';
import styles from './shell.module.css';
import { SuspensionLine } from './suspension-line.js';
import { TopLine } from './top-line.js';

const NoOrganization = lazy(() => import('../../pages/team/no-organization.js'));

/** What the router gives a link to the page that is open. */
const CURRENT = { 'data-status': 'active', 'aria-current': 'page' } as const;

/** What is around each page: the rail, the line with the balance, and what to know when events do not arrive. */
export function Shell() {
  const main = useRef<HTMLElement>(null);
  const { data, isPending } = useQuery(me);
  const mayRead = useMay('read');
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const isOperator = data?.user.is_operator === true;
  const hasNone = data?.active_organization_id === null;
  useFocusOnNewPage(main);
  useLinkSaid(data);
  return (
    <div className={styles.shell}>
      <a
        className={styles.skip}
        href="#main"
        onClick={(event) => {
          // For the router, another part of the address is another page.
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the page
      </a>
      <nav
        className={styles.rail}
        aria-label="Pages"
        data-for={isOperator && isForOperators(path) ? 'operators' : 'all'}
      >
        <Link to="/" className={styles.name}>
          gpurent
        </Link>
        <ul className={styles.pages}>
          {PAGES.filter(({ forReaders }) => mayRead || !forReaders).map(({ to, title, icon }) => (
            <li key={to}>
              <Link to={to} className={styles.page} {...(belongsTo(to, path) ? CURRENT : {})}>
                <Icon name={icon} />
                {title}
              </Link>
            </li>
          ))}
        </ul>
        {isOperator && <OperatorPages path={path} />}
      </nav>
      <TopLine />
      <main id="main" ref={main} tabIndex={-1} className={classNames(styles.main, isPending && styles.early)}>
        <ConnectionLine />
        {!hasNone && (
          <>
            <SuspensionLine />
            <BalanceLine />
          </>
        )}
        <Content mayRead={mayRead} hasOrganization={!hasNone} />
      </main>
    </div>
  );
}

/** The page at the address, unless the reader is refused everything that it would read: their role is, or they have no organization. */
function Content({ mayRead, hasOrganization }: { mayRead: boolean; hasOrganization: boolean }) {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  if (!hasOrganization && isOfOrganization(path))
    return (
      <Suspense fallback={<Skeleton rows={6} />}>
        <NoOrganization />
      </Suspense>
    );
  if (mayRead || !isForReaders(path)) return <Outlet />;
  return (
    <Page title="Not for your role">
      <OnlyFor right="read">{null}</OnlyFor>
    </Page>
  );
}

/** What only operators see. */
function OperatorPages({ path }: { path: string }) {
  return (
    <section className={styles.group} aria-labelledby="operator-pages">
      <h2 id="operator-pages">Operator</h2>
      <ul className={styles.pages}>
        {OPERATOR_PAGES.map(({ to, title, isExact = false, tab, icon }) => (
          <li key={to} data-bar={icon !== undefined}>
            <Link
              to={to}
              className={styles.page}
              activeOptions={{ exact: isExact, includeSearch: false }}
              {...(path === tab ? CURRENT : {})}
            >
              {icon && <Icon name={icon} />}
              {title}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Moves the focus to a page that was gone to, so that keyboards and screen readers begin there; not to the first page. */
function useFocusOnNewPage(main: React.RefObject<HTMLElement | null>): void {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [path, main]);
}

/** Says for which organization one acts, where a link has decided it: its page could look like that of another one. */
function useLinkSaid(reader: Me | undefined): void {
  const name = reader?.memberships.find(({ organization_id: id }) => id === reader.active_organization_id)?.name;
  useEffect(() => {
    if (name !== undefined && hasLinkToSay()) say(`You act for ${name} in this tab, as the link says.`);
  }, [name]);
}
