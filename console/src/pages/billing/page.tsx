import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { me } from '../../data/api/queries.js';
import { may } from '../../data/api/rights.js';
import { WHO_PAYS } from '../../data/instances/who-pays.js';
import { LinkButton } from '../../parts/controls/button.js';
import { Page } from '../../parts/layout/page.js';
import { Notice } from '../../parts/controls/states.js';
import { TabLinks } from '../../parts/layout/tab-links.js';
import { Overview } from './overview.js';
import { TABS, type Checkout, type Tab } from './search.js';
import { SpendTab } from './spend-tab.js';
import { TopUp } from './top-up.js';
import { TransactionsTab } from './transactions-tab.js';

const route = getRouteApi('/billing');
const TITLES: Readonly<Record<Tab, string>> = {
  overview: 'Overview',
  spend: 'Where it went',
  transactions: 'Transactions',
};
const CONTENT: Readonly<Record<Tab, () => React.JSX.Element>> = {
  overview: Overview,
  spend: SpendTab,
  transactions: TransactionsTab,
};

export default function BillingPage() {
  const { tab = 'overview', checkout, pay = false } = route.useSearch();
  const { data: user } = useQuery(me);
  const mayPay = may(user, 'change_money');
  const Content = CONTENT[tab];
  const tabs = TABS.map((each) => ({
    title: TITLES[each],
    isActive: each === tab,
    to: '/billing' as const,
    search: each === 'overview' ? {} : { tab: each },
  }));
  return (
    <Page
      title="Billing"
      lead="Where did the money go, and when does it end?"
      actions={
        mayPay && (
          <LinkButton kind="main" to="/billing" search={(before) => ({ ...before, pay: true })} aria-haspopup="dialog">
            Add money
          </LinkButton>
        )
      }
    >
      {checkout && <AfterCheckout outcome={checkout} />}
      {pay && user && !mayPay && (
        <Notice>
          <p role="status">{WHO_PAYS}</p>
        </Notice>
      )}
      <TabLinks label="Billing" tabs={tabs} />
      <Content />
      {mayPay && <TopUp />}
    </Page>
  );
}

/** What to know when one comes back from the payment provider. The money itself is told by an event. */
function AfterCheckout({ outcome }: { outcome: Checkout }) {
  return (
    <Notice>
      <p role="status">
        {outcome === 'paid'
          ? 'Thank you. The money is in your balance as soon as the payment provider has confirmed it; some ways to pay take days.'
          : 'Nothing was paid.'}
      </p>
    </Notice>
  );
}
