import { Type } from 'typebox';
import { TRANSACTION_KINDS } from '../../domain/money.js';
import { listTransactions, spendDaily, type TransactionDetails } from '../../services/money/billing.js';
import { openCheckout } from '../../services/money/payments.js';
import { ADMIN, MEMBER, callerOf, sessionOf } from '../policy.js';
import { IdempotencyHeaders, Micro, Timestamp, Uuid, body, iso, nullable, optional } from '../schemas.js';
import { page, pageFields, viewPage, type Routes } from './routes.js';

const Transaction = Type.Object(
  {
    id: Uuid,
    kind: Type.Enum([...TRANSACTION_KINDS]),
    amount_micro: Type.Integer({ description: 'micro-dollars that it adds to the balance; a charge is negative' }),
    instance_id: nullable(Uuid),
    meter: nullable(Type.Enum(['gpu', 'disk'])),
    reason: nullable(Type.String()),
    created_at: Timestamp,
  },
  { title: 'Transaction' },
);

const DailySpend = Type.Object(
  { date: Type.String({ description: 'YYYY-MM-DD, UTC' }), gpu_micro: Micro, disk_micro: Micro },
  { title: 'DailySpend' },
);

export const TransactionQuery = Type.Object({
  ...pageFields,
  ...optional({ instance_id: Uuid, kind: Type.Enum([...TRANSACTION_KINDS]) }),
});

export const billingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/billing/transactions',
    {
      config: { policy: MEMBER },
      schema: {
        summary: 'What moved the balance, newest first',
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
        summary: 'What was charged on each UTC day, today last',
        querystring: Type.Object({ ...pageFields, days: Type.Integer({ minimum: 1, maximum: 366, default: 30 }) }),
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
        summary: 'Open a page on which the balance is topped up',
        headers: IdempotencyHeaders,
        body: body({ amount_micro: Type.Integer({ minimum: 1_000_000, maximum: 100_000_000_000 }) }),
        response: { 201: Type.Object({ id: Type.String(), url: Type.String() }) },
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

function transactionView(row: TransactionDetails) {
  return { ...row, created_at: iso(row.created_at) };
}
