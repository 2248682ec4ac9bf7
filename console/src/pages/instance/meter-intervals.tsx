import { useInfiniteQuery } from '@tanstack/react-query';
import { api } from '../../data/api.js';
import { diskPrice } from '../../data/instances.js';
import type { Instance, MeterInterval } from '../../data/models.js';
import { priceOf } from '../../data/money.js';
import { exactDuration } from '../../data/times.js';
import { Hourly, Money } from '../../parts/money.js';
import { Older } from '../../parts/older.js';
import { Section } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { At } from '../../parts/time.js';
import styles from './page.module.css';

const PAGE = 100;
/** A time goes on without an event. */
const AGAIN_MS = 60_000;
type Meter = MeterInterval['meter'];
const METERS = ['gpu', 'disk'] as const;
const NAMES: Readonly<Record<Meter, string>> = { gpu: 'GPU time', disk: 'Disk' };

const COLUMNS: readonly Column<MeterInterval>[] = [
  { title: 'For', cell: ({ meter }) => NAMES[meter] },
  { title: 'Began', cell: ({ began_at }) => <At at={began_at} /> },
  { title: 'Ended', cell: ({ ended_at }) => (ended_at === null ? 'goes on' : <At at={ended_at} />) },
  { title: 'Charged of it', cell: ({ charged_ms }) => exactDuration(charged_ms), isNumber: true },
];

/** The times on which the charges of an instance rest, and how these follow from them. */
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
    <Section title="What they rest on">
      <Loaded query={query}>
        {({ pages }) => {
          const intervals = pages.flatMap(({ items }) => items);
          return (
            <>
              {!query.hasNextPage && <Sums instance={instance} intervals={intervals} />}
              <Table
                label="Charged times"
                columns={COLUMNS}
                rows={intervals}
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

/** What all times together cost: all of them are needed for it, because a sum is rounded once. */
function Sums({ instance, intervals }: { instance: Instance; intervals: readonly MeterInterval[] }) {
  const rates = { gpu: instance.price_per_hour_micro, disk: diskPrice(instance) };
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
