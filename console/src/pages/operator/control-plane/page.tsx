import { getRouteApi } from '@tanstack/react-router';
import { Page } from '../../../parts/layout/page.js';
import { TabLinks } from '../../../parts/layout/tab-links.js';
import { TABS, type Tab } from './search.js';
import { SettingsTab } from './settings-tab.js';
import { StateTab } from './state-tab.js';
import { WorkersTab } from './workers-tab.js';

const route = getRouteApi('/operator/control-plane');

const PARTS: Readonly<Record<Tab, { title: string; Part: () => React.JSX.Element }>> = {
  state: { title: 'State', Part: StateTab },
  workers: { title: 'Workers', Part: WorkersTab },
  settings: { title: 'Settings', Part: SettingsTab },
};

export default function ControlPlanePage() {
  const { tab = 'state' } = route.useSearch();
  const { Part } = PARTS[tab];
  return (
    <Page title="Control plane" lead="Is the control plane itself well, and how is it set up?">
      <TabLinks
        label="Parts of the control plane"
        tabs={TABS.map((each) => ({
          title: PARTS[each].title,
          isActive: each === tab,
          to: '/operator/control-plane',
          search: { tab: each },
        }))}
      />
      <Part />
    </Page>
  );
}
