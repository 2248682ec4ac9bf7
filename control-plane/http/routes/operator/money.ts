import { Type } from 'typebox';
import { dateOf, listTransactionsOf } from '../../../services/billing/reports/statements.js';
import { listPayments, type PaymentDetails } from '../../../services/billing/payments/payments.js';
import { reconcilePayout, type ReconciledEntry } from '../../../services/billing/payments/payouts.js';
import { listRevenue, type MachineDay } from '../../../services/billing/reports/revenue.js';
import { OPERATOR } from '../../access/policy.js';
import {
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  micro,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../../schema/schemas.js';
import { Transaction, TransactionQuery, transactionView } from '../billing/billing.js';
import { PageQuery, idOf, page, pageFields, viewPage, type Routes } from '../routes.js';

const Revenue = Type.Object(
  {
    date: text('The day of use in UTC, as YYYY-MM-DD'),
    machine_id: uuid('The machine that was used'),
    machine_name: text('The name of that machine'),
    gpu_micro: micro('The charges for GPU time'),
    disk_micro: micro('The charges for disks'),
  },
  { title: 'Revenue' },
);

const Payment = Type.Object(
  {
    id: text("The payment provider's id of the payment"),
    provider: text('The payment provider, as the setting GPURENT_PAYMENTS names it'),
    organization_id: nullable(
      uuid('The organization that paid; null while the provider has sent only a refund or dispute'),
    ),
    organization_name: nullable(text('The name of that organization; null: as `organization_id`')),
    paid_micro: micro('The amount paid'),
    credited_micro: micro('The amount that the ledger has credited for the payment'),
    refund_debited_micro: micro('The amount that the ledger has debited for refunds'),
    dispute_debited_micro: micro('The amount that the ledger has debited for lost disputes'),
    created_at: timestamp('When the provider first sent an event about the payment'),
    failed_at: nullable(timestamp('When the provider reported that the payment has failed; null: it did not')),
  },
  { title: 'Payment' },
);

const PayoutEntry = Type.Object(
  {
    id: text("The payment provider's id of the movement"),
    kind: choice(['payment', 'refund', 'dispute', 'other'], 'The kind of the movement'),
    payment_id: nullable(text('The payment that the movement belongs to; null: none')),
    organization_id: nullable(
      uuid('The organization that made that payment; null: the payment does not belong to this marketplace'),
    ),
    organization_name: nullable(text('The name of that organization; null: as `organization_id`')),
    amount_micro: micro('The amount before the fee of the provider; negative for an outgoing movement'),
    fee_micro: micro('The fee of the provider'),
    in_ledger: nullable(
      flag(
        'Whether the ledger also has the movement; it has a dispute once that is decided; null: the movement does not belong to this marketplace',
      ),
    ),
  },
  { title: 'PayoutEntry' },
);

/** Routes for operators: revenue, payments and payouts. */
export const operatorMoneyRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/organizations/:id/transactions',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        operationId: 'listOrganizationTransactions',
        summary: 'List the transactions of an organization, newest first',
        params: idOf('organization'),
        querystring: TransactionQuery,
        response: { 200: page(Transaction) },
      },
    },
    (request) => viewPage(listTransactionsOf(platform, request.params.id, request.query), transactionView),
  );
  app.get(
    '/v1/operator/revenue',
    {
      config,
      schema: {
        operationId: 'listRevenue',
        summary: 'List the charges for each machine on each UTC day, newest day first',
        description:
          'Charges count for the day of use: a late usage report adds to a past day. Credits are not subtracted.',
        querystring: Type.Object({
          days: integer('The number of days, including today', { minimum: 1, maximum: 366, default: 30 }),
          ...optional({ machine_id: uuid('Only charges for this machine') }),
          ...pageFields,
        }),
        response: { 200: page(Revenue) },
      },
    },
    (request) => viewPage(listRevenue(platform, request.query), revenueView),
  );
  app.get(
    '/v1/operator/payments',
    {
      config,
      schema: {
        operationId: 'listPayments',
        summary: 'List the payments that the payment provider has reported, newest first',
        querystring: PageQuery,
        response: { 200: page(Payment) },
      },
    },
    (request) => viewPage(listPayments(platform, request.query), paymentView),
  );
  app.get(
    '/v1/operator/payouts/:id/entries',
    {
      config: { ...config, refusals: ['CHECKOUT_UNAVAILABLE', 'UNAVAILABLE'] },
      schema: {
        operationId: 'listPayoutEntries',
        summary: 'List the movements in a payout of the payment provider, compared with the ledger',
        description:
          'Always returns pages of at most 100, because the control plane requests each page from the payment provider.',
        params: idOf("payout, which is the payment provider's"),
        querystring: PageQuery,
        response: { 200: page(PayoutEntry) },
      },
    },
    async (request) => viewPage(await reconcilePayout(platform, request.params.id, request.query), entryView),
  );
};

function revenueView({ day, ...row }: MachineDay) {
  return { ...row, date: dateOf(day) };
}

function paymentView(row: PaymentDetails) {
  return { ...row, created_at: iso(row.created_at), failed_at: isoOrNull(row.failed_at) };
}

function entryView({ paymentId, amountMicro, feeMicro, ...entry }: ReconciledEntry) {
  return { ...entry, payment_id: paymentId, amount_micro: amountMicro, fee_micro: feeMicro };
}
