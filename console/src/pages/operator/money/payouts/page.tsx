import { getRouteApi } from '@tanstack/react-router';
import { api } from '../../../../data/api/api.js';
import { Money } from '../../../../parts/values/money.js';
import { Page } from '../../../../parts/layout/page.js';
import { Marked } from '../../../../parts/values/status.js';
import { Table } from '../../../../parts/layout/table.js';
import { FindForm } from '../../find-form.js';
import { OrganizationLink } from '../../links.js';
import type { PayoutEntry } from '../../models.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';
import { MoneyTabs } from '../tabs.js';

const route = getRouteApi('/operator/money/payouts');

export default function PayoutsPage() {
  const { payout } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page title="Payouts" lead="Does the ledger have what the payment provider has paid out?">
      <MoneyTabs shown="payouts" />
      <FindForm
        key={payout ?? ''}
        label="Payout"
        hint="Its id in the dashboard of the payment provider: Stripe’s begin with po_."
        value={payout ?? ''}
        onFind={(text) => void navigate({ search: text === '' ? {} : { payout: text } })}
      />
      {payout !== undefined && <Entries key={payout} id={payout} />}
    </Page>
  );
}

/** The movements in a payout. They are asked of the payment provider, and do not change. */
function Entries({ id }: { id: string }) {
  return (
    <Paged
      isReadOnce
      name={['payout', id]}
      read={(query, signal) =>
        api.get('/v1/operator/payouts/{id}/entries', { params: { path: { id }, query }, signal })
      }
      empty={<p role="status">Nothing is in this payout.</p>}
    >
      {(entries) => (
        <Table
          label="Movements in the payout"
          rows={entries}
          keyOf={(entry) => entry.id}
          columns={[
            {
              title: 'Movement',
              cell: (entry) => (
                <span className={styles.name}>
                  {entry.kind} <code className={styles.weak}>{entry.id}</code>
                </span>
              ),
            },
            { title: 'Ledger', cell: (entry) => <InLedger entry={entry} /> },
            {
              title: 'Organization',
              cell: ({ organization_id, organization_name }) =>
                organization_id !== null && (
                  <OrganizationLink organization_id={organization_id} organization_name={organization_name} />
                ),
            },
            { title: 'Payment', cell: ({ payment_id }) => payment_id !== null && <code>{payment_id}</code> },
            { title: 'Amount', cell: ({ amount_micro }) => <Money micro={amount_micro} />, isNumber: true },
            { title: 'Fee', cell: ({ fee_micro }) => <Money micro={fee_micro} />, isNumber: true },
          ]}
        />
      )}
    </Paged>
  );
}

/** Whether the ledger has a movement, and what to do if not. */
function InLedger({ entry: { in_ledger, kind } }: { entry: PayoutEntry }) {
  if (in_ledger === true) return <Marked shape="dot">has it</Marked>;
  if (in_ledger === null) return <Marked shape="dash">not of this marketplace</Marked>;
  return (
    <>
      <Marked shape="square">lacks it</Marked>
      <span className={styles.weak}>
        {kind === 'dispute'
          ? 'The dispute is not decided, or its event never arrived.'
          : 'Its event never arrived: send it again from the dashboard of the payment provider.'}
      </span>
    </>
  );
}
