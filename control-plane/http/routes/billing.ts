import { Type } from 'typebox';
import { TRANSACTION_KINDS } from '../../domain/money.js';
import { listTransactions, spendDaily, type TransactionDetails } from '../../services/billing/statements.js';
import { openCheckout } from '../../services/billing/payments.js';
import { ADMIN, MEMBER, callerOf, sessionOf } from '../policy.js';
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
} from '../schemas.js';
import { page, pageFields, viewPage, type Routes } from './routes.js';

export const Transaction = Type.Object(
  {
    id: uuid('The id of the transaction'),
    kind: choice(TRANSACTION_KINDS, 'What moved the balance'),
    amount_micro: micro('What it adds to the balance; negative for a charge'),
    instance_id: nullable(uuid('The instance that was charged for; null for what is no charge')),
    meter: nullable(choice(['gpu', 'disk'], 'Whether GPU time or disk was charged; null for what is no charge')),
    reason: nullable(text('Why an operator granted it; null for what no operator did')),
    created_at: timestamp('When it was booked'),
  },
  { title: 'Transaction' },
);

const DailySpend = Type.Object(
  {
    date: text('The day in UTC, as YYYY-MM-DD'),
    gpu_micro: micro('What GPU time was charged'),
    disk_micro: micro('What disk was charged'),
  },
  { title: 'DailySpend' },
);

export const TransactionQuery = Type.Object({
  ...pageFields,
  ...optional({
    instance_id: uuid('Only what this instance was charged'),
    kind: choice(TRANSACTION_KINDS, 'Only transactions of this kind'),
  }),
});

export const billingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/billing/transactions',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'listTransactions',
        summary: 'List what moved the balance, newest first',
        description: 'Returns everything, unless `limit` or `cursor` asks for a page.',
        querystring: TransactionQuery,
        response: { 200: page(Transaction) },
      },
    },
    (request) => viewPage(listTransactions(platform, callerOf(request), request.query), transactionView),
  );

  app.get(
    '/v1/billing/spend-daily',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'listDailySpend',
        summary: 'List what was charged for the use of each UTC day, today last',
        description:
          'Days without a charge are there, too. A host that tells of usage late adds to days that are over.',
        querystring: Type.Object({
          ...pageFields,
          days: integer('How many days, today included', { minimum: 1, maximum: 366, default: 30 }),
        }),
        response: { 200: page(DailySpend) },
      },
    },
    (request) => spendDaily(platform, callerOf(request), request.query),
  );

  app.post(
    '/v1/billing/checkout-session',
    {
      config: { policy: ADMIN, refusals: ['CHECKOUT_UNAVAILABLE', 'IDEMPOTENCY_KEY_REUSED'] },
      schema: {
        operationId: 'createCheckoutSession',
        summary: 'Open a page of the payment provider on which the balance is topped up',
        headers: IdempotencyHeaders,
        body: body({
          amount_micro: micro('What to pay: whole cents', { minimum: 1_000_000, maximum: 100_000_000_000 }),
        }),
        response: {
          201: Type.Object({
            id: text('The id that the payment provider gave it'),
            url: text('The page on which to pay'),
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
