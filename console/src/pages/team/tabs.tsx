import { TabLinks } from '../../parts/tab-links.js';

/** The parts of the page for admins. */
export function TeamTabs() {
  return (
    <TabLinks
      label="Team"
      tabs={[
        { title: 'Members', to: '/team' },
        { title: 'Audit log', to: '/team/audit' },
      ]}
    />
  );
}
