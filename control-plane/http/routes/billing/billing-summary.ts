import { Type } from 'typebox';
import { SUMMARY_GROUPS, summarySlice, type SummaryRequest } from '../../../services/billing/reports/summary.js';
import { READ_MONEY, callerOf } from '../../access/policy.js';
import { choice, micro, nullable, optional, text } from '../../schema/schemas.js';
import { answerCsv } from '../csv.js';
import { listOrPage, pageFields, type Routes } from '../routes.js';
import { answerSlices } from '../whole-list.js';

const ChargeSum = Type.Object(
  {
    key: nullable(
      text(
        'The id of the instance, template or API key; the `deployed_by` of instances; their label; or the day as YYYY-MM-DD. Null: without an API key, or without a label',
      ),
    ),
    name: nullable(
      text(
        'The label of the instance, the name of the template when it was last used, or the name and prefix of the API key; otherwise the same as `key`',
      ),
    ),
    gpu_micro: micro('The charges for GPU time'),
    disk_micro: micro('The charges for disks'),
    total_micro: micro('The sum of both'),
  },
  { title: 'ChargeSum' },
);

const SummaryQuery = Type.Object({
  ...pageFields,
  by: choice(SUMMARY_GROUPS, 'What the charges are added up by', { default: 'instance' }),
  ...optional({
    from: text('The first day of use, in UTC. Default: 29 days before `to`', { format: 'date' }),
    to: text('The last day of use, in UTC, at most 365 days after `from`. Default: today', { format: 'date' }),
  }),
});

const FILE = { name: 'summary.csv', columns: ['key', 'name', 'gpu_micro', 'disk_micro', 'total_micro'] };

const DESCRIPTION =
  'In the order of the first day of use in the range. Leaves out what was not charged there. A late usage report adds to a past day.';

/** What use has cost, added up by what it was used for. */
export const billingSummaryRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/billing/summary',
    {
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'listChargeSums',
        summary: 'List the charges for a range of days of use, by instance, template, API key, member, label or day',
        description: DESCRIPTION,
        querystring: SummaryQuery,
        response: { 200: listOrPage(ChargeSum) },
      },
    },
    (request, reply) =>
      answerSlices(
        reply,
        request.query,
        (query: SummaryRequest) => summarySlice(platform, callerOf(request), query),
        (item) => item,
      ),
  );

  app.get(
    '/v1/billing/summary.csv',
    {
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'exportChargeSums',
        summary: 'Download the charges for a range of days of use as a CSV file, added up in the same way',
        description: DESCRIPTION,
        produces: ['text/csv'],
        querystring: SummaryQuery,
        response: { 200: text('A header line, then one line for each sum') },
      },
    },
    (request, reply) =>
      answerCsv(
        reply,
        request.query,
        FILE,
        (query) => summarySlice(platform, callerOf(request), query),
        (item) => item,
      ),
  );
};
