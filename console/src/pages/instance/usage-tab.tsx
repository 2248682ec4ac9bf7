import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { lazy, Suspense, useMemo } from 'react';
import { api } from '../../data/api/api.js';
import { serverNow } from '../../data/api/clock.js';
import type { Instance } from '../../data/api/models.js';
import { Empty, Loaded, Skeleton } from '../../parts/controls/states.js';
import { TabLinks } from '../../parts/layout/tab-links.js';
import styles from './page.module.css';
import { WINDOWS, type Window } from './search.js';
import { chartsOf, spanOf } from './usage-charts.js';

const Chart = lazy(async () => ({ default: (await import('../../parts/charts/chart.js')).Chart }));
const route = getRouteApi('/instances/$id');
const TITLES: Readonly<Record<Window, string>> = { '1h': 'Last hour', '24h': 'Last day', '90d': 'Last 90 days' };
const AGAIN_MS = 30_000;

/** What the instance has used, as its host has measured it. */
export function UsageTab({ instance: { id } }: { instance: Instance }) {
  const { window = '1h' } = route.useSearch();
  const query = useQuery({
    queryKey: ['instance', id, 'usage', window],
    queryFn: ({ signal }) =>
      api.get('/v1/instances/{id}/usage', { params: { path: { id }, query: { window } }, signal }),
    refetchInterval: AGAIN_MS,
    placeholderData: keepPreviousData,
  });
  const charts = useMemo(() => query.data && chartsOf(query.data), [query.data]);
  // The window ends when it was read, and what is missing at its ends is a gap as well.
  const span = useMemo(() => query.data && spanOf(query.data.window, serverNow()), [query.data]);
  return (
    <>
      <TabLinks
        label="Time"
        tabs={WINDOWS.map((each) => ({
          title: TITLES[each],
          isActive: each === window,
          to: '/instances/$id',
          params: { id },
          search: {
            tab: 'usage' as const,
            window: each,
          },
        }))}
      />
      <Loaded query={query} rows={6}>
        {({ at, resolution_seconds }) =>
          charts === undefined || charts.length === 0 ? (
            <Empty title="Nothing was measured in this time">
              The host measures every ten seconds while the instance runs.
            </Empty>
          ) : (
            <Suspense fallback={<Skeleton rows={6} />}>
              <div className={styles.charts}>
                {charts.map((chart) => (
                  <Chart key={chart.title} at={at} stepSeconds={resolution_seconds} span={span} {...chart} />
                ))}
              </div>
            </Suspense>
          )
        }
      </Loaded>
    </>
  );
}
