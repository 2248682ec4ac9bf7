import { TabLinks } from '../../../parts/layout/tab-links.js';

/** The pages about the money of everybody. */
export function MoneyTabs({ shown }: { shown: 'payments' | 'payouts' | 'revenue' }) {
  return (
    <TabLinks
      label="Money of everybody"
      tabs={[
        { title: 'Payments', to: '/operator/money', isActive: shown === 'payments' },
        { title: 'Payouts', to: '/operator/money/payouts', isActive: shown === 'payouts' },
        { title: 'Revenue by machine', to: '/operator/money/revenue', isActive: shown === 'revenue' },
      ]}
    />
  );
}
