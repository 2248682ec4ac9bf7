import { stringify } from 'csv-stringify';
import { Readable } from 'node:stream';
import { listTransactions } from '../../services/money/billing.js';
import { MEMBER, callerOf } from '../policy.js';
import { iso, text } from '../schemas.js';
import { TransactionFilter } from './billing.js';
import type { Routes } from './routes.js';

const PAGE_ROWS = 1_000;
const COLUMNS = ['id', 'created_at', 'kind', 'amount_micro', 'instance_id', 'meter', 'reason'];

/** For spreadsheets: everything, page by page, so that a long ledger holds nobody up. */
export const transactionsCsvRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/billing/transactions.csv',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'exportTransactions',
        summary: 'Download what moved the balance as a CSV file, newest first',
        produces: ['text/csv'],
        querystring: TransactionFilter,
        response: { 200: text('A line for each transaction, below a line of headings') },
      },
    },
    (request, reply) => {
      function* rows() {
        for (let cursor: string | null | undefined; cursor !== null;) {
          const at = cursor === undefined ? {} : { cursor };
          const page = listTransactions(platform, callerOf(request), { ...request.query, ...at, limit: PAGE_ROWS });
          for (const row of page.items) yield { ...row, created_at: iso(row.created_at) };
          cursor = page.next_cursor ?? null;
        }
      }
      void reply
        .type('text/csv; charset=utf-8')
        .header('Content-Disposition', 'attachment; filename="transactions.csv"');
      // What a person has written must not become a formula.
      return Readable.from(rows()).pipe(stringify({ header: true, columns: COLUMNS, escape_formulas: true })) as never;
    },
  );
};
