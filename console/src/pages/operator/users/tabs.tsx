import { TabLinks } from '../../../parts/layout/tab-links.js';

/** The pages about those who sign in. */
export function UserTabs({ shown }: { shown: 'users' | 'sign-ins' }) {
  return (
    <TabLinks
      label="Those who sign in"
      tabs={[
        { title: 'Users', to: '/operator/users', isActive: shown === 'users' },
        { title: 'Companies’ sign-ins', to: '/operator/users/sign-ins', isActive: shown === 'sign-ins' },
      ]}
    />
  );
}
