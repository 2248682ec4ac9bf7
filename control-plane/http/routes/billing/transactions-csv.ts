import { listTransactions } from '../../../services/billing/reports/statements.js';
import { READ_MONEY, callerOf } from '../../access/policy.js';
import { text } from '../../schema/schemas.js';
import { TransactionQuery, transactionView } from './billing.js';
import { answerCsv } from '../csv.js';
import type { Routes } from '../routes.js';

const FILE = {
  name: 'transactions.csv',
  columns: ['id', 'created_at', 'kind', 'amount_micro', 'instance_id', 'meter', 'reason'],
};

/** Exports the transactions for spreadsheets. */
export const transactionsCsvRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/billing/transactions.csv',
    {
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'exportTransactions',
        summary: 'Download the transactions as a CSV file, newest first',
        produces: ['text/csv'],
        querystring: TransactionQuery,
        response: { 200: text('A header line, then one line for each transaction') },
      },
    },
    (request, reply) =>
      answerCsv(
        reply,
        request.query,
        FILE,
        (query) => listTransactions(platform, callerOf(request), query),
        transactionView,
      ),
  );
};
