import { TabLinks } from '../../parts/layout/tab-links.js';

/** The pages about instances of everybody. */
export function InstanceTabs({ shown }: { shown: 'all' | 'ignored stops' }) {
  return (
    <TabLinks
      label="Instances of everybody"
      tabs={[
        { title: 'All', to: '/operator/instances', isActive: shown === 'all' },
        { title: 'Ignored stops', to: '/operator/ignored-stops', isActive: shown === 'ignored stops' },
      ]}
    />
  );
}
