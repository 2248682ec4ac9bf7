import { Link } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { Money } from '../../../parts/values/money.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { Table } from '../../../parts/layout/table.js';
import { At } from '../../../parts/values/time.js';
import { OrganizationLink } from '../links.js';
import type { Payment } from '../models.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { paymentState } from './payment-state.js';
import { MoneyTabs } from './tabs.js';

export default function PaymentsPage() {
  return (
    <Page title="Money" lead="What has the payment provider reported, and what of it is in the ledger?">
      <MoneyTabs shown="payments" />
      <p className={styles.prose}>
        Refunds and lost disputes are taken from the balance. You make refunds, and answer disputes, at the payment
        provider. An open dispute freezes its organization, whose page can close it: the{' '}
        <Link to="/operator">overview</Link> leads to those that are open.
      </p>
      <Paged
        name={['payments']}
        read={(query, signal) => api.get('/v1/operator/payments', { params: { query }, signal })}
        empty={
          <Empty title="Nothing was paid">
            With GPURENT_PAYMENTS=stripe, renters pay by card. In any case you can grant credit to an organization.
          </Empty>
        }
      >
        {(payments) => <Payments payments={payments} />}
      </Paged>
    </Page>
  );
}

function Payments({ payments }: { payments: readonly Payment[] }) {
  return (
    <Table
      label="Payments"
      rows={payments}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Payment',
          cell: ({ id }) => (
            <span className={styles.name}>
              <code>{id}</code>
            </span>
          ),
        },
        {
          title: 'Organization',
          cell: ({ organization_id, organization_name }) =>
            organization_id !== null && (
              <OrganizationLink organization_id={organization_id} organization_name={organization_name} />
            ),
        },
        {
          title: 'State',
          cell: (payment) => {
            const { shape, words } = paymentState(payment);
            return <Marked shape={shape}>{words}</Marked>;
          },
        },
        { title: 'Paid', cell: ({ paid_micro }) => <Money micro={paid_micro} />, isNumber: true },
        { title: 'Credited', cell: ({ credited_micro }) => <Money micro={credited_micro} />, isNumber: true },
        { title: 'Refunded', cell: ({ refund_debited_micro: micro }) => <Money micro={micro} />, isNumber: true },
        {
          title: 'Lost in disputes',
          cell: ({ dispute_debited_micro: micro }) => <Money micro={micro} />,
          isNumber: true,
        },
        { title: 'First reported', cell: ({ created_at }) => <At at={created_at} /> },
      ]}
    />
  );
}
