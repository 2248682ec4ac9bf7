import { setImmediate as nextTurn } from 'node:timers/promises';
import { Type } from 'typebox';
import { NEED_KINDS } from '../../../domain/machines/need.js';
import { revenueOfDay, today, type RevenueDay } from '../../../services/billing/reports/revenue-days.js';
import { dateOf } from '../../../services/billing/reports/statements.js';
import { revenueByModel } from '../../../services/oversight/model-revenue.js';
import type { Need } from '../../../services/oversight/need.js';
import { getOperatorOverview } from '../../../services/oversight/operator-overview.js';
import type { Metrics } from '../../metrics/metrics.js';
import { OPERATOR } from '../../access/policy.js';
import { choice, integer, isoOrNull, list, micro, nullable, text, timestamp, uuid } from '../../schema/schemas.js';
import type { Routes } from '../routes.js';

const count = (description: string) => integer(description, { minimum: 0 });

const GpuSum = Type.Object(
  {
    gpu_model: nullable(text('The model; null in the last row: all further models')),
    total: count('The number of present GPUs of machines that are not removed: the sum of the fields below'),
    sold: count('Held by an instance, also while its machine is not connected'),
    free: count('Healthy and held by nobody; they can be rented where there is an offer'),
    held_back: count('The same, but on a machine that takes no new instances now'),
    unhealthy: count('Held by nobody, and not healthy'),
    quarantined: count('Held by a workload in quarantine'),
    away: count('Not rented, on a machine that is not connected; all of a machine that is lost'),
  },
  { title: 'GpuSum' },
);

const NeedItem = Type.Object({
  subject: text('The path of its object after `/v1/`, as in events; empty: it concerns the control plane itself'),
  name: nullable(text('The name of the object, or of its machine; null: it has none')),
  message: nullable(text('Why, or what follows; null: the kind says it all')),
  since: nullable(timestamp('Since when; null: not known')),
  machine_id: nullable(uuid('The machine that it concerns; null: none')),
  organization_id: nullable(uuid('The organization that it concerns; null: none')),
});

const Need = Type.Object(
  {
    kind: choice([...NEED_KINDS], 'What is the matter; later releases can add more'),
    count: integer('How many items there are', { minimum: 1 }),
    items: list(NeedItem, 'The first 10 of them; the oldest first, but for workers and GPUs'),
  },
  { title: 'Need' },
);

const OperatorOverview = Type.Object(
  {
    machines: Type.Object(
      {
        connected: count('Machines that are connected'),
        away: count('Machines that are not connected'),
        lost: count('Machines that are not connected and were declared lost'),
      },
      { description: 'The number of machines that are not removed' },
    ),
    gpus: list(GpuSum, 'The GPUs by model, the most frequent first; at most 51 rows'),
    needs: list(Need, 'What needs an act of an operator now, by kind, what concerns everybody first'),
  },
  { title: 'OperatorOverview' },
);

const RevenueDaySchema = Type.Object({
  date: text('The day of use in UTC, as YYYY-MM-DD'),
  gpu_micro: micro('The charges for GPU time'),
  disk_micro: micro('The charges for disks'),
  machines: count('The number of machines whose use was charged'),
});

const DailyRevenue = Type.Object(
  {
    days: list(RevenueDaySchema, 'The days, today last, without gaps'),
    models: list(
      Type.Object({
        gpu_model: nullable(
          text('The model of the first GPU of the machines; null: further models, and removed machines'),
        ),
        gpu_micro: micro('The charges for GPU time'),
        disk_micro: micro('The charges for disks'),
        machines: count('The number of machines whose use was charged'),
      }),
      'The charges of the last whole day by GPU model, the largest first; at most 51 rows',
    ),
  },
  { title: 'DailyRevenue' },
);

/** Routes for operators: sums over the whole marketplace. `metrics` knows what only the process knows. */
export const operatorOverviewRoutes =
  (metrics: Metrics): Routes =>
  (app, platform) => {
    const config = { policy: OPERATOR };

    app.get(
      '/v1/operator/overview',
      {
        config,
        schema: {
          operationId: 'getOperatorOverview',
          summary: 'Get how many machines and GPUs there are, and what needs an act now',
          description:
            'A kind that has an alert is listed while the metric of that is beyond its limit; `stop_ignored` also until the charges are credited. The size of the answer does not grow with the marketplace.',
          response: { 200: OperatorOverview },
        },
      },
      () => {
        const { needs, ...sums } = getOperatorOverview(platform, metrics.signals());
        return { ...sums, needs: needs.map(needView) };
      },
    );
    app.get(
      '/v1/operator/revenue-daily',
      {
        config,
        schema: {
          operationId: 'getDailyRevenue',
          summary: 'Get the charges of all machines for each UTC day of use',
          description:
            'Charges count for the day of use: a late usage report adds to a past day. Credits are not subtracted.',
          querystring: Type.Object({
            days: integer('The number of days, including today', { minimum: 1, maximum: 92, default: 30 }),
          }),
          response: { 200: DailyRevenue },
        },
      },
      async ({ query }) => {
        const days: RevenueDay[] = [];
        // Read once: midnight can pass between two turns.
        const last = today(platform);
        for (let day = last - query.days + 1; day <= last; day++) {
          days.push(revenueOfDay(platform, day));
          // A day that is not remembered is a row for each machine.
          await nextTurn();
        }
        return { days: days.map(dayView), models: revenueByModel(platform, last - 1) };
      },
    );
  };

function needView({ items, ...need }: Need) {
  return { ...need, items: items.map((item) => ({ ...item, since: isoOrNull(item.since) })) };
}

function dayView({ day, ...sums }: RevenueDay) {
  return { ...sums, date: dateOf(day) };
}
