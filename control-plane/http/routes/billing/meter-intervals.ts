import { Type } from 'typebox';
import { listMeterIntervals } from '../../../services/actions/meter-intervals.js';
import { READ_MONEY, callerOf } from '../../access/policy.js';
import { choice, integer, iso, isoOrNull, micro, nullable, timestamp } from '../../schema/schemas.js';
import { idOf, page, PageQuery, viewPage, type Routes } from '../routes.js';

const MeterInterval = Type.Object(
  {
    meter: choice(['gpu', 'disk'], 'What was metered: GPU time or the disk'),
    began_at: timestamp('When it began'),
    ended_at: nullable(timestamp('When it ended; null: it goes on')),
    charged_ms: integer(
      'How much of it is charged so far, in milliseconds; not what nobody reported, and not what was written off',
    ),
    uncovered_micro: micro(
      'What of the price of the millisecond in which the balance or a limit ran out was not covered, and not charged',
    ),
  },
  { title: 'MeterInterval' },
);

/** The route that says on which times the charges of an instance rest. */
export const meterIntervalRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/instances/:id/meter-intervals',
    {
      config: { policy: READ_MONEY, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'listMeterIntervals',
        summary: 'List the times on which the charges of an instance rest, newest first',
        description:
          'All charges for one meter are together `floor(rate * sum of charged_ms / 3,600,000) - sum of uncovered_micro`. The rate per hour is `price_per_hour_micro` for `gpu`, and `disk_gb * storage_price_per_gb_hour_micro` for `disk`.',
        params: idOf('instance'),
        querystring: PageQuery,
        response: { 200: page(MeterInterval) },
      },
    },
    (request) =>
      viewPage(
        listMeterIntervals(platform, callerOf(request), request.params.id, request.query),
        ({ id: _, began_at, ended_at, ...rest }) => ({
          ...rest,
          began_at: iso(began_at),
          ended_at: isoOrNull(ended_at),
        }),
      ),
  );
};
