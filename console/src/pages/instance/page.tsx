import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { costNow, diskPrice, nameOf } from '../../data/instances.js';
import type { Instance } from '../../data/models.js';
import { instance as instanceQuery } from '../../data/queries.js';
import { useMay } from '../../data/rights.js';
import { Facts } from '../../parts/facts.js';
import { InstanceActions } from '../../parts/instance-actions.js';
import { Hourly, Money } from '../../parts/money.js';
import { Page } from '../../parts/page.js';
import { Reason } from '../../parts/progress.js';
import { Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { TabLinks } from '../../parts/tab-links.js';
import { Ago } from '../../parts/time.js';
import { Connect } from './connect.js';
import { CostTab } from './cost-tab.js';
import { LogsTab } from './logs-tab.js';
import styles from './page.module.css';
import { TABS, type Tab } from './search.js';
import { SettingsTab } from './settings-tab.js';
import { TimelineTab } from './timeline-tab.js';
import { UsageTab } from './usage-tab.js';

const route = getRouteApi('/instances/$id');

export default function InstancePage() {
  const { id } = route.useParams();
  const query = useQuery(instanceQuery(id));
  const mayChange = useMay('change');
  if (query.data === undefined)
    return (
      <Page title="Instance">
        <Loaded query={query} rows={8}>
          {() => null}
        </Loaded>
      </Page>
    );
  return (
    <Loaded query={query} rows={8}>
      {(instance) => (
        <Page
          title={nameOf(instance)}
          lead={<State instance={instance} />}
          actions={mayChange && <InstanceActions instance={instance} />}
        >
          <Summary instance={instance} />
          <Connect instance={instance} />
          <Tabs instance={instance} />
        </Page>
      )}
    </Loaded>
  );
}

/** How it is, since when, and why. */
function State({ instance }: { instance: Instance }) {
  return (
    <span className={styles.state}>
      <Status status={instance.status} /> <Ago at={instance.status_changed_at} /> <Reason instance={instance} />
    </span>
  );
}

function Summary({ instance }: { instance: Instance }) {
  const { template, disk_gb, spend_micro, price_per_hour_micro, deployed_by } = instance;
  return (
    <Facts
      facts={[
        ['Cost so far', <Money key="spend" micro={spend_micro} />],
        ['Cost now', <Hourly key="now" micro={costNow(instance)} />],
        ['While it runs', <Hourly key="runs" micro={price_per_hour_micro} />],
        ['While it is stopped', <Hourly key="stopped" micro={diskPrice(instance)} />],
        ['Template', template.name],
        ['Disk', `${disk_gb} GB`],
        ['Deployed by', deployed_by],
      ]}
    />
  );
}

const TITLES: Readonly<Record<Tab, string>> = {
  ...{ timeline: 'Timeline', logs: 'Logs', usage: 'Usage', cost: 'Cost', settings: 'Settings' },
};

function Tabs({ instance }: { instance: Instance }) {
  const { tab = 'timeline' } = route.useSearch();
  const params = { id: instance.id };
  const tabs = TABS.map((each) => ({
    ...{ title: TITLES[each], to: '/instances/$id' as const, params },
    search: each === 'timeline' ? {} : { tab: each },
    isActive: each === tab,
  }));
  return (
    <>
      <TabLinks label="Parts of the instance" tabs={tabs} />
      {tab === 'timeline' && <TimelineTab id={instance.id} />}
      {tab === 'logs' && <LogsTab key={instance.id} instance={instance} />}
      {tab === 'usage' && <UsageTab instance={instance} />}
      {tab === 'cost' && <CostTab instance={instance} />}
      {tab === 'settings' && <SettingsTab key={instance.id} instance={instance} />}
    </>
  );
}
