import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { nameOf } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { instance as instanceQuery } from '../../data/api/queries.js';
import { useMay } from '../../data/api/rights.js';
import { DeployAgain, ToLogs } from '../../parts/controls/again.js';
import { InstanceActions } from '../../parts/instances/instance-actions.js';
import { Outlook } from '../../parts/values/outlook.js';
import { Page, Section } from '../../parts/layout/page.js';
import { Reason } from '../../parts/values/progress.js';
import { Loaded } from '../../parts/controls/states.js';
import { Status } from '../../parts/values/status.js';
import { TabLinks } from '../../parts/layout/tab-links.js';
import { Since } from '../../parts/values/time.js';
import { Connect } from './connect.js';
import { CostTab } from './cost-tab.js';
import { LogsTab } from './logs-tab.js';
import styles from './page.module.css';
import { TABS, type Tab } from './search.js';
import { SettingsTab } from './settings-tab.js';
import { Summary } from './summary.js';
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
          {instance.status === 'error' ? (
            <AfterFailure instance={instance} mayDeploy={mayChange} />
          ) : (
            <Connect instance={instance} mayChange={mayChange} />
          )}
          <Tabs instance={instance} />
        </Page>
      )}
    </Loaded>
  );
}

/** How it is, for how long, why, and what becomes of it. */
function State({ instance }: { instance: Instance }) {
  return (
    <span className={styles.state}>
      <Status status={instance.status} /> <Since at={instance.status_changed_at} /> <Reason instance={instance} />{' '}
      <Outlook instance={instance} />
    </span>
  );
}

/** An instance in error cannot be started again: how to find out why, and how to have another one. */
function AfterFailure({ instance, mayDeploy }: { instance: Instance; mayDeploy: boolean }) {
  return (
    <Section title="It cannot be started again">
      <div className={styles.connect}>
        <div className={styles.links}>
          {mayDeploy && <DeployAgain kind="main" instance={instance} />}
          <ToLogs instance={instance} />
        </div>
      </div>
    </Section>
  );
}

const TITLES: Readonly<Record<Tab, string>> = {
  timeline: 'Timeline',
  logs: 'Logs',
  usage: 'Usage',
  cost: 'Cost',
  settings: 'Settings',
};

function Tabs({ instance }: { instance: Instance }) {
  const { tab = 'timeline' } = route.useSearch();
  const params = { id: instance.id };
  const tabs = TABS.map((each) => ({
    title: TITLES[each],
    to: '/instances/$id' as const,
    params,
    search: each === 'timeline' ? {} : { tab: each },
    isActive: each === tab,
  }));
  return (
    <>
      <TabLinks label="Parts of the instance" tabs={tabs} />
      {tab === 'timeline' && <TimelineTab key={instance.id} id={instance.id} />}
      {tab === 'logs' && <LogsTab key={instance.id} instance={instance} />}
      {tab === 'usage' && <UsageTab instance={instance} />}
      {tab === 'cost' && <CostTab key={instance.id} instance={instance} />}
      {tab === 'settings' && <SettingsTab key={instance.id} instance={instance} />}
    </>
  );
}
