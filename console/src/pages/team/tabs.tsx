import { TabLinks } from '../../parts/layout/tab-links.js';

/** The parts of the page for admins. */
export function TeamTabs({ shown }: { shown: 'members' | 'audit log' }) {
  return (
    <TabLinks
      label="Team"
      tabs={[
        { title: 'Members', to: '/team', isActive: shown === 'members' },
        { title: 'Audit log', to: '/team/audit', isActive: shown === 'audit log' },
      ]}
    />
  );
}
