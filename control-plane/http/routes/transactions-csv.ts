import { stringify } from 'csv-stringify';
import { Readable, pipeline } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { listTransactions } from '../../services/billing/statements.js';
import { MEMBER, callerOf } from '../policy.js';
import { iso, text } from '../schemas.js';
import { TransactionQuery } from './billing.js';
import type { Routes } from './routes.js';

/** Rows that are read and written in one turn of the event loop. */
const PAGE_ROWS = 500;
const COLUMNS = ['id', 'created_at', 'kind', 'amount_micro', 'instance_id', 'meter', 'reason'];

/** Exports the transactions for spreadsheets; reads the ledger in pages, so that a long export does not delay other requests. */
export const transactionsCsvRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/billing/transactions.csv',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'exportTransactions',
        summary: 'Download the transactions as a CSV file, newest first',
        produces: ['text/csv'],
        querystring: TransactionQuery,
        response: { 200: text('A header line, then one line for each transaction') },
      },
    },
    (request, reply) => {
      const { limit = Infinity, cursor, ...filter } = request.query;
      const caller = callerOf(request);
      const pageAt = (left: number, from?: string) =>
        listTransactions(platform, caller, {
          ...filter,
          limit: Math.min(PAGE_ROWS, left),
          ...(from === undefined ? {} : { cursor: from }),
        });
      // Reads the first page before the response begins, because the request can still be refused here.
      const first = pageAt(limit, cursor);
      async function* rows() {
        let left = limit;
        for (let page = first; ; page = pageAt(left, page.next_cursor)) {
          for (const row of page.items) yield { ...row, created_at: iso(row.created_at) };
          left -= page.items.length;
          if (left <= 0 || page.next_cursor === null) return;
          await nextTurn();
        }
      }
      void reply
        .type('text/csv; charset=utf-8')
        .header('Content-Disposition', 'attachment; filename="transactions.csv"');
      // Text that a person has written must not become a formula in a spreadsheet.
      const csv = stringify({ header: true, columns: COLUMNS, escape_formulas: true });
      // A later error only aborts the response: the client sees that it is incomplete.
      pipeline(Readable.from(rows()), csv, () => {});
      return csv as never;
    },
  );
};
