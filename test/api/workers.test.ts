import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestControlPlane } from '../harness/control-plane.js';

interface Worker {
  name: string;
  runs: number;
  failures: number;
  failing: boolean;
  last_run_at: string | null;
  last_run_ms: number | null;
  last_failure_at: string | null;
  last_failure: string | null;
}

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const workers = async () => (await test.operator.get<{ items: Worker[] }>('/v1/operator/workers')).items;
const worker = async (name: string) => (await workers()).find((each) => each.name === name);
const scrape = async () => (await fetch(`${test.url}/metrics`)).text();
const iso = () => new Date(test.clock.now()).toISOString();

/** Lets the worker that expires logs do something else for one run. */
function runWith(expire: () => never): void {
  const { logs } = test.core.platform;
  const before = logs.expire.bind(logs);
  logs.expire = expire;
  test.advance(1_000);
  logs.expire = before;
}

it('every worker is there before its first run, with nothing to tell', async () => {
  const names = (await workers()).map(({ name }) => name);
  expect(names).toEqual([...names].sort());
  expect(names).toEqual(expect.arrayContaining(['dispatch', 'logs', 'purge', 'settle', 'time-outs']));
  const never = { runs: 0, last_run_at: null, last_run_ms: null, last_failure_at: null, last_failure: null };
  expect(await worker('purge')).toEqual({ name: 'purge', failures: 0, failing: false, ...never });
  expect(await scrape()).toContain('gpurent_worker_runs_total{worker="purge"} 0');
});

it('a worker that fails says when and why, and for how long it ran; the others run on', async () => {
  test.advance(1_000);
  const before = await worker('purge');
  runWith(() => {
    test.clock.advance(250);
    throw new Error(`no space ${'x'.repeat(1_000)}`);
  });
  const failed = await worker('logs');
  expect(failed).toMatchObject({ runs: 2, failures: 1, failing: true, last_run_ms: 250 });
  expect(failed?.last_failure).toMatch(/^no space x{491}$/);
  expect(Date.parse(failed?.last_failure_at ?? '')).toBe(test.clock.now() - 250);
  expect(failed?.last_run_at).toBe(failed?.last_failure_at);
  expect(await worker('purge')).toMatchObject({ runs: (before?.runs ?? 0) + 1, failures: 0, last_run_at: iso() });
  const shown = await scrape();
  expect(shown).toContain('gpurent_worker_failing{worker="logs"} 1');
  expect(shown).toContain('gpurent_worker_failing{worker="settle"} 0');
  expect(shown).toContain('gpurent_worker_failures_total{worker="logs"} 1');
  expect(shown).toContain('gpurent_worker_last_run_seconds{worker="logs"} 0.25');
});

it('a worker that runs again is not failing any more, and what was wrong can still be read', async () => {
  const failed = await worker('logs');
  test.advance(1_000);
  expect(await worker('logs')).toMatchObject({
    runs: 3,
    failures: 1,
    failing: false,
    last_run_at: iso(),
    last_run_ms: 0,
    last_failure: failed?.last_failure,
    last_failure_at: failed?.last_failure_at,
  });
  const shown = await scrape();
  expect(shown).toContain('gpurent_worker_failing{worker="logs"} 0');
  expect(shown).toContain('gpurent_worker_runs_total{worker="logs"} 3');
  expect(shown).toContain(`gpurent_worker_last_run_timestamp_seconds{worker="logs"} ${test.clock.now() / 1000}`);
});

it('workers that fail are shown also while the database cannot be used', async () => {
  const { store } = test.core.platform;
  const transact = store.transact.bind(store);
  store.transact = () => {
    throw new Error('disk I/O error');
  };
  test.advance(1_000);
  const shown = await scrape();
  store.transact = transact;
  expect(shown).toContain('gpurent_ready 0');
  expect(shown).toContain('gpurent_worker_failing{worker="settle"} 1');
  expect(await worker('settle')).toMatchObject({ failing: true, last_failure: 'disk I/O error' });
});

it('only workers that there are become labels', () => {
  expect(() => test.core.platform.workerRuns.record('strange', () => 1)).toThrow('worker strange is not declared');
});

it('a control plane that starts again begins to count anew', async () => {
  await test.restart();
  expect(await worker('logs')).toMatchObject({ runs: 0, failures: 0, failing: false, last_failure: null });
});
