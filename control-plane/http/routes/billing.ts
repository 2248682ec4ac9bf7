import { Type } from 'typebox';
import { TRANSACTION_KINDS } from '../../domain/money.js';
import { listTransactions, spendDaily, type TransactionDetails } from '../../services/money/billing.js';
import { openCheckout } from '../../services/money/payments.js';
import { ADMIN, MEMBER, callerOf, sessionOf } from '../policy.js';
import { IdempotencyHeaders, Micro, Timestamp, Uuid, body, iso, items, nullable, optional } from '../schemas.js';
import { pageFields, page, type Routes } from './routes.js';

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

const filterFields = optional({ instance_id: Uuid, kind: Type.Enum([...TRANSACTION_KINDS]) });
export const TransactionFilter = Type.Object(filterFields);
const TransactionQuery = Type.Object({ ...pageFields, ...filterFields });

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
    (request) => {
      const { items: rows, ...rest } = listTransactions(platform, callerOf(request), request.query);
      return { items: rows.map(transactionView), ...rest };
    },
  );

  app.get(
    '/v1/billing/spend-daily',
    {
      config: { policy: MEMBER },
      schema: {
        summary:
          'What was charged for the use of each UTC day, today last. A host that tells of usage late adds to days that are over',
        querystring: Type.Object({ days: Type.Integer({ minimum: 1, maximum: 366, default: 30 }) }),
        response: { 200: items(DailySpend) },
      },
    },
    (request) => ({ items: spendDaily(platform, callerOf(request), request.query.days) }),
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
