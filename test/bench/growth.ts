import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../scripts/eventually.js';
import type { Benchmark } from './benchmark.js';
import { addPast, foundMarket, type Market } from './past-market.js';

const [YOUNG, OLD] = [500, 200_000];
const LEDGER_ROWS_AN_INSTANCE = 12.5;
const BEATS = 20;

/**
 * Measures the processor time of calls, in ms, for a marketplace with 500 past instances and one with 200,000 and 2.5 million ledger
 * rows. `growth` is the second over the first: 1 is a cost that does not grow with history.
 */
export const growth: Benchmark = async () => {
  const young = await measure(YOUNG);
  const old = await measure(OLD);
  return Object.fromEntries(
    Object.entries(old).flatMap(([call, ms]) => {
      const before = young[call] ?? NaN;
      return [
        [`${call} (${YOUNG})`, round(before)],
        [`${call} (${OLD})`, round(ms)],
        [`${call} growth`, round(ms / before)],
      ];
    }),
  );
};

async function measure(instances: number): Promise<Record<string, number>> {
  const market = await foundMarket();
  const { controlPlane, agent } = market;
  try {
    await controlPlane.rewrite((database) => addPast(database, instances, instances * LEDGER_ROWS_AN_INSTANCE));
    await eventually('the host', () =>
      agent.connect().then(
        () => true,
        () => false,
      ),
    );
    return await costs(market);
  } finally {
    agent.close();
    await controlPlane.stop();
  }
}

/** Returns the processor time of each call in milliseconds. */
async function costs({ controlPlane, agent, renter, instanceId }: Market): Promise<Record<string, number>> {
  const operator = controlPlane.measuredOperator;
  const cost = async (times: number, call: () => Promise<unknown>) => {
    for (let warm = 0; warm < Math.min(times, 10); warm++) await call();
    const before = controlPlane.cpuMs();
    for (let time = 0; time < times; time++) await call();
    return (controlPlane.cpuMs() - before) / times;
  };
  const get = (path: string, api = renter) => cost(200, () => api.get(path));
  const text = (path: string, times: number) =>
    cost(times, async () => {
      const headers = { Authorization: `Bearer ${renter.token ?? ''}` };
      await (await fetch(`${controlPlane.url}${path}`, { headers })).text();
    });
  const idle = await cost(1, () => pause(1_000));
  const result: Record<string, number> = {
    'GET instance': await get(`/v1/instances/${instanceId}`),
    'GET instances': await get('/v1/instances'),
    'GET instances, a page with past ones': await get('/v1/instances?include_destroyed=true&limit=25'),
    'GET transactions, a page of 100': await get('/v1/billing/transactions?limit=100'),
    'GET spend-daily': await get('/v1/billing/spend-daily'),
    'GET offers': await get('/v1/offers'),
    'GET catalog status': await get('/v1/catalog/status'),
    'GET operator machines': await get('/v1/operator/machines', operator),
    'GET operator instances, a page': await get('/v1/operator/instances?limit=25', operator),
    'GET metrics': await text('/metrics', 50),
    'GET transactions.csv, whole': await text('/v1/billing/transactions.csv', 1),
    'GET instances with past ones, whole': await text('/v1/instances?include_destroyed=true', 1),
  };
  const beats = await cost(1, async () => {
    for (let beat = 0; beat < BEATS; beat++) agent.beat();
    await pause(1_000);
  });
  return { ...result, 'a heartbeat': Math.max(beats - idle, 0) / BEATS };
}

const round = (value: number) => Math.round(value * 1_000) / 1_000;
