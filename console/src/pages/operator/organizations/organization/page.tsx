import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { CopyLine } from '../../../../parts/controls/copy.js';
import { Facts } from '../../../../parts/layout/facts.js';
import { Hourly, Money } from '../../../../parts/values/money.js';
import { Page } from '../../../../parts/layout/page.js';
import { Loaded, Notice } from '../../../../parts/controls/states.js';
import { Marked } from '../../../../parts/values/status.js';
import { TabLinks } from '../../../../parts/layout/tab-links.js';
import { Ago, At, BalanceLasts } from '../../../../parts/values/time.js';
import { InstancesTable } from '../../instances-table.js';
import type { components } from '../../../../../../client/api/index.js';
import styles from '../../operator.module.css';
import { operatedOrganization } from '../../queries.js';
import { standing } from '../standing.js';
import { OrganizationActs } from './acts.js';
import { ApiKeys, Machines, Templates } from './contents.js';
import { TABS, type Tab } from './search.js';
import { Ledger, Members } from './tables.js';

const route = getRouteApi('/operator/organizations/$id');

const TITLES: Readonly<Record<Tab, string>> = {
  members: 'Members',
  instances: 'Instances',
  ledger: 'Ledger',
  keys: 'API keys',
  templates: 'Templates',
  machines: 'Machines',
};

export default function OperatedOrganizationPage() {
  const { id } = route.useParams();
  const { tab = 'members' } = route.useSearch();
  const query = useQuery(operatedOrganization(id));
  return (
    <Page title={query.data?.name ?? 'Organization'} lead="Who are they, what do they have, and how do they stand?">
      <Loaded query={query} rows={8}>
        {(organization) => (
          <>
            <Suspension suspension={organization.suspension} />
            <Standing organization={organization} />
            <OrganizationActs organization={organization} />
            <TabLinks
              label="Parts of the organization"
              tabs={TABS.map((each) => ({
                title: TITLES[each],
                isActive: each === tab,
                to: '/operator/organizations/$id',
                params: { id },
                search: { tab: each },
              }))}
            />
            <Shown tab={tab} id={id} name={organization.name} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

type Organization = components['schemas']['Organization'];

function Suspension({ suspension }: Pick<Organization, 'suspension'>) {
  if (suspension === null) return null;
  return (
    <Notice kind="warning">
      <p>
        Suspended since <At at={suspension.since} />: {suspension.reason}
      </p>
      <p>
        Its instances are destroyed with their disks <Ago at={suspension.disks_kept_until} />, unless you restore it
        before.
      </p>
    </Notice>
  );
}

function Standing({ organization }: { organization: Organization }) {
  const { shape, words } = standing(organization);
  return (
    <>
      <Facts
        facts={[
          ['State', <Marked shape={shape}>{words}</Marked>],
          ['Balance', <Money micro={organization.balance_micro} />],
          ['Charged', <Hourly micro={organization.charged_per_hour_micro ?? 0} />],
          ['Must be covered', <Hourly micro={organization.burn_per_hour_micro} />],
          ['Lasts', <BalanceLasts of={organization} />],
          ['Created', <At at={organization.created_at} />],
        ]}
      />
      <div className={styles.id}>
        <CopyLine label="Id of the organization" text={organization.id} />
      </div>
    </>
  );
}

function Shown({ tab, id, name }: { tab: Tab; id: string; name: string }) {
  switch (tab) {
    case 'members':
      return <Members id={id} />;
    case 'instances':
      return <InstancesTable of={{ organization_id: id }} />;
    case 'ledger':
      return <Ledger id={id} />;
    case 'keys':
      return <ApiKeys id={id} />;
    case 'templates':
      return <Templates id={id} owner={name} />;
    case 'machines':
      return <Machines id={id} />;
  }
}
