import { Type } from 'typebox';
import { dateOf, listTransactionsOf } from '../../services/billing/statements.js';
import { listPayments, type PaymentDetails } from '../../services/billing/payments.js';
import { reconcilePayout, type ReconciledEntry } from '../../services/billing/payouts.js';
import { listRevenue, type MachineDay } from '../../services/billing/revenue.js';
import { OPERATOR } from '../policy.js';
import { choice, flag, integer, iso, micro, nullable, optional, text, timestamp, uuid } from '../schemas.js';
import { Transaction, TransactionQuery, transactionView } from './billing.js';
import { PageQuery, idOf, page, pageFields, viewPage, type Routes } from './routes.js';

const Revenue = Type.Object(
  {
    date: text('The day of use in UTC, as YYYY-MM-DD'),
    machine_id: uuid('The machine that was used'),
    machine_name: text('What its host calls it'),
    gpu_micro: micro('What GPU time was charged'),
    disk_micro: micro('What disk was charged'),
  },
  { title: 'Revenue' },
);

const Payment = Type.Object(
  {
    id: text("The payment provider's id of the payment"),
    provider: text('The payment provider, as the setting GPURENT_PAYMENTS names it'),
    organization_id: nullable(uuid('Who has paid; null while the provider has told of a refund or dispute alone')),
    paid_micro: micro('What was paid'),
    credited_micro: micro('What of it the ledger has as a payment'),
    refund_debited_micro: micro('What the ledger has taken back for refunds'),
    dispute_debited_micro: micro('What the ledger has taken back for disputes that were lost'),
    created_at: timestamp('When the provider first told of it'),
  },
  { title: 'Payment' },
);

const PayoutEntry = Type.Object(
  {
    id: text("The payment provider's id of the movement"),
    kind: choice(['payment', 'refund', 'dispute', 'other'], 'What was moved'),
    payment_id: nullable(text('The payment that it belongs to; null for none')),
    organization_id: nullable(uuid('Who has paid that; null for a payment that is none of this marketplace')),
    amount_micro: micro('What was moved before the fee of the provider; negative where it left'),
    fee_micro: micro('The fee of the provider'),
    in_ledger: nullable(
      flag(
        'Whether the ledger has it, too; a dispute is there once it is decided; null: it is none of this marketplace',
      ),
    ),
  },
  { title: 'PayoutEntry' },
);

/** Operators: what was earned, and whether it was paid out. */
export const operatorMoneyRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/organizations/:id/transactions',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        operationId: 'listOrganizationTransactions',
        summary: 'List what moved the balance of an organization, newest first',
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
        summary: 'List what was charged for each machine on each UTC day, newest day first',
        description:
          'By the day of use: a host that tells of usage late adds to days that are over. What was credited is not taken off.',
        querystring: Type.Object({
          days: integer('How many days, today included', { minimum: 1, maximum: 366, default: 30 }),
          ...optional({ machine_id: uuid('Only this machine') }),
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
        summary: 'List the payments that the payment provider has told of, newest first',
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
        summary: 'List what went into a payout of the payment provider, held against the ledger',
        description: 'Always in pages, of at most a hundred: each is asked of the payment provider.',
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
  return { ...row, created_at: iso(row.created_at) };
}

function entryView({ paymentId, amountMicro, feeMicro, ...entry }: ReconciledEntry) {
  return { ...entry, payment_id: paymentId, amount_micro: amountMicro, fee_micro: feeMicro };
}
