import { Type } from 'typebox';
import { TRANSACTION_KINDS } from '../../../domain/money/money.js';
import { listTransactions, spendDaily, type TransactionDetails } from '../../../services/billing/reports/statements.js';
import { openCheckout } from '../../../services/billing/payments/payments.js';
import { MONEY, READ_MONEY, callerOf, sessionOf } from '../../access/policy.js';
import {
  IdempotencyHeaders,
  body,
  choice,
  iso,
  micro,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
  integer,
} from '../../schema/schemas.js';
import { listOrPage, pageFields, type Routes } from '../routes.js';
import { answerList } from '../whole-list.js';

export const Transaction = Type.Object(
  {
    id: uuid('The id of the transaction'),
    kind: choice(TRANSACTION_KINDS, 'What changed the balance'),
    amount_micro: micro('The amount added to the balance; negative for a charge'),
    instance_id: nullable(uuid('The instance that was charged; null: not a charge')),
    meter: nullable(choice(['gpu', 'disk'], 'Whether GPU time or disk was charged; null: not a charge')),
    reason: nullable(text('The reason that the operator gave; null: not made by an operator')),
    created_at: timestamp('When the transaction was posted'),
  },
  { title: 'Transaction' },
);

const DailySpend = Type.Object(
  {
    date: text('The day in UTC, as YYYY-MM-DD'),
    gpu_micro: micro('The charges for GPU time'),
    disk_micro: micro('The charges for disks'),
  },
  { title: 'DailySpend' },
);

export const TransactionQuery = Type.Object({
  ...pageFields,
  ...optional({
    instance_id: uuid('Only charges for this instance'),
    kind: choice(TRANSACTION_KINDS, 'Only transactions of this kind'),
  }),
});

export const billingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/billing/transactions',
    {
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'listTransactions',
        summary: 'List the transactions of the organization, newest first',
        description: 'Returns all transactions, unless `limit` or `cursor` asks for a page.',
        querystring: TransactionQuery,
        response: { 200: listOrPage(Transaction) },
      },
    },
    (request, reply) =>
      answerList(
        reply,
        request.query,
        (query) => listTransactions(platform, callerOf(request), query),
        transactionView,
      ),
  );

  app.get(
    '/v1/billing/spend-daily',
    {
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'listDailySpend',
        summary: 'List the charges for each UTC day of use, today last',
        description: 'Includes days without charges. A late usage report adds to a past day.',
        querystring: Type.Object({
          ...pageFields,
          days: integer('The number of days, including today', { minimum: 1, maximum: 366, default: 30 }),
        }),
        response: { 200: listOrPage(DailySpend) },
      },
    },
    (request) => spendDaily(platform, callerOf(request), request.query),
  );

  app.post(
    '/v1/billing/checkout-session',
    {
      config: { policy: MONEY, refusals: ['CHECKOUT_UNAVAILABLE', 'IDEMPOTENCY_KEY_REUSED'] },
      schema: {
        operationId: 'createCheckoutSession',
        summary: 'Create a page of the payment provider on which a person tops up the balance',
        headers: IdempotencyHeaders,
        body: body({
          amount_micro: micro('The amount to pay, a multiple of a cent', {
            minimum: 1_000_000,
            maximum: 100_000_000_000,
          }),
        }),
        response: {
          201: Type.Object({
            id: text('The id of the session at the payment provider'),
            url: text('The URL of the payment page'),
          }),
        },
      },
    },
    async (request, reply) => {
      const key = request.headers['idempotency-key'];
      const { replayed, ...session } = await openCheckout(platform, sessionOf(request), request.body, key);
      if (replayed) void reply.header('Idempotent-Replayed', 'true');
      void reply.code(201);
      return session;
    },
  );
};

export function transactionView(row: TransactionDetails) {
  return { ...row, created_at: iso(row.created_at) };
}
