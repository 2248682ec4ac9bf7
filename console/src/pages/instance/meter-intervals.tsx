import { useInfiniteQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import { diskPrice } from '../../data/instances/instances.js';
import type { Instance, MeterInterval } from '../../data/api/models.js';
import { priceOf } from '../../data/values/money.js';
import { exactDuration } from '../../data/values/times.js';
import { Hourly, Money } from '../../parts/values/money.js';
import { Older } from '../../parts/controls/older.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { Table, type Column } from '../../parts/layout/table.js';
import { At } from '../../parts/values/time.js';
import styles from './page.module.css';
import { chargesOf } from './runs.js';

const PAGE = 100;
/** A time goes on without an event. */
const AGAIN_MS = 60_000;
type Meter = MeterInterval['meter'];
const METERS = ['gpu', 'disk'] as const;
const NAMES: Readonly<Record<Meter, string>> = { gpu: 'GPU time', disk: 'Disk' };

/** A time of use, with what it has cost. */
interface Run extends MeterInterval {
  rate: number;
  /** Undefined while older runs are not read: a sum is rounded once, so what one of them costs follows from those before. */
  charge: number | undefined;
}

const COLUMNS: readonly Column<Run>[] = [
  { title: 'For', cell: ({ meter }) => NAMES[meter] },
  { title: 'Began', cell: ({ began_at }) => <At at={began_at} /> },
  { title: 'Ended', cell: ({ ended_at }) => (ended_at === null ? 'goes on' : <At at={ended_at} />) },
  { title: 'Charged time', cell: ({ charged_ms }) => exactDuration(charged_ms), isNumber: true },
  { title: 'Rate', cell: ({ rate }) => <Hourly micro={rate} />, isNumber: true },
  {
    title: 'Charge',
    cell: ({ charge }) => (charge === undefined ? 'show all runs' : <Money micro={charge} />),
    isNumber: true,
  },
];

/** Each run of an instance, and each time that its disk was kept: what it has cost, and how the sum follows. */
export function MeterIntervals({ instance }: { instance: Instance }) {
  const { id } = instance;
  const query = useInfiniteQuery({
    queryKey: ['billing', 'intervals', id],
    queryFn: ({ signal, pageParam }) => {
      const cursor = pageParam === undefined ? {} : { cursor: pageParam };
      const params = { path: { id }, query: { limit: PAGE, ...cursor } };
      return api.get('/v1/instances/{id}/meter-intervals', { params, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    refetchInterval: AGAIN_MS,
  });
  return (
    <Section title="Runs">
      <Loaded query={query}>
        {({ pages }) => {
          const intervals = pages.flatMap(({ items }) => items);
          return (
            <>
              {!query.hasNextPage && <Sums instance={instance} intervals={intervals} />}
              <Table
                label="Runs"
                columns={COLUMNS}
                rows={runsOf(intervals, ratesOf(instance), !query.hasNextPage)}
                keyOf={({ meter, began_at }) => `${meter} ${began_at}`}
              />
              <Older query={query} />
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

function runsOf(intervals: readonly MeterInterval[], rates: Readonly<Record<Meter, number>>, areAll: boolean): Run[] {
  const charges = areAll ? chargesOf(intervals, rates) : [];
  return intervals.map((each, index) => ({ ...each, rate: rates[each.meter], charge: charges[index] }));
}

function ratesOf(instance: Instance): Readonly<Record<Meter, number>> {
  return { gpu: instance.price_per_hour_micro, disk: diskPrice(instance) };
}

/** What all times together cost: all of them are needed for it, because a sum is rounded once. */
function Sums({ instance, intervals }: { instance: Instance; intervals: readonly MeterInterval[] }) {
  const rates = ratesOf(instance);
  return (
    <ul className={styles.total}>
      {METERS.map((meter) => ({ meter, its: intervals.filter((each) => each.meter === meter) }))
        .filter(({ its }) => its.length > 0)
        .map(({ meter, its }) => {
          const ms = its.reduce((sum, { charged_ms }) => sum + charged_ms, 0);
          const uncovered = its.reduce((sum, { uncovered_micro }) => sum + uncovered_micro, 0);
          return (
            <li key={meter}>
              {NAMES[meter]}: {exactDuration(ms)} at <Hourly micro={rates[meter]} />
              {uncovered > 0 && (
                <>
                  , less <Money micro={uncovered} /> that nothing was left for
                </>
              )}
              , is <Money micro={priceOf(rates[meter], ms) - uncovered} />
            </li>
          );
        })}
    </ul>
  );
}
