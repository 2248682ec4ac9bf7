import autocannon from 'autocannon';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Daemon } from '../../scripts/daemon.js';
import type { Benchmark } from './benchmark.js';
import { foundBusyMarket, type BusyMarket } from './busy-market.js';
import { cpuMsOf } from './process-costs.js';

const BARE = fileURLToPath(new URL('./bare-fastify.js', import.meta.url));
const MACHINES = 25;
const CONNECTIONS = 50;
const ROUNDS = 5;
/** Enough for the compiler of V8 to have done with what runs often. */
const WARM_UP_MS = 1_000;
const ROUND_MS = 300;
const MOST_REQUESTS = 20_000;
const US = 1_000;
const CHANGES = 500;

/**
 * Measures the processor time of a read, in us, with 50 connections while nothing changes, beside a bare Fastify that sends the same
 * bytes, in alternating rounds. `ratio` is the bare one's time over ours: 1 is the limit.
 */
export const reads: Benchmark = async () => {
  const market = await foundBusyMarket(MACHINES);
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-'));
  let bare: Daemon | undefined;
  try {
    const paths = {
      'GET healthz': '/healthz',
      'GET instance': `/v1/instances/${market.instances[0] ?? ''}`,
      'GET instances': '/v1/instances',
      'GET offers': '/v1/offers',
      'GET catalog status': '/v1/catalog/status',
    };
    const answers = await answersOf(market, Object.values(paths));
    const file = join(folder, 'answers.json');
    writeFileSync(file, JSON.stringify(Object.fromEntries(answers.map(({ path, body }) => [path, body]))));
    bare = Daemon.start('bare Fastify', BARE, [file], {}, join(folder, 'bare.log'));
    const { url } = await bare.firstLine<{ url: string }>();
    const results: Record<string, number> = {};
    for (const [name, path] of Object.entries(paths)) {
      const etag = answers.find((answer) => answer.path === path)?.etag;
      const sides = { market, bare: { url, pid: bare.pid } };
      Object.assign(results, await compare(name, sides, path));
      if (etag !== undefined) Object.assign(results, await compare(`${name}, 304`, sides, path, etag));
    }
    return { ...results, ...(await costsOfChanges(market, paths)) };
  } finally {
    await bare?.stop();
    await market.stop();
    rmSync(folder, { recursive: true, force: true });
  }
};

/**
 * Measures what a read costs more after a change than without one, in us: of the instance itself, of one of the listed instances, and of
 * one of the listed offers. One request follows the other.
 */
async function costsOfChanges(
  { controlPlane, renter, agents, instances, offers }: BusyMarket,
  paths: { 'GET instance': string; 'GET instances': string; 'GET offers': string },
): Promise<Record<string, number>> {
  const [agent, id, offer] = [agents[0], instances[0], offers[0]];
  if (!agent || id === undefined || offer === undefined) throw new Error('the market is empty');
  let price = 1_000;
  const report = () => agent.speak(id);
  const reprice = () =>
    controlPlane.operator.request('PATCH', `/v1/operator/offers/${offer}`, { price_per_hour_micro: ++price });
  const changes = { 'GET instance': report, 'GET instances': report, 'GET offers': reprice };
  const results: Record<string, number> = {};
  for (const [name, change] of Object.entries(changes)) {
    const read = () => renter.get(paths[name as keyof typeof paths]);
    const costOf = async (...steps: (() => Promise<unknown>)[]) => {
      for (let time = 0; time < CHANGES; time++) for (const step of steps) await step();
      const before = controlPlane.cpuMs();
      for (let time = 0; time < CHANGES; time++) for (const step of steps) await step();
      return ((controlPlane.cpuMs() - before) / CHANGES) * US;
    };
    const [changed, both, unchanged] = [await costOf(change), await costOf(change, read), await costOf(read)];
    results[`${name}, more after a change, us`] = tenth(both - changed - unchanged);
  }
  return results;
}

interface Sides {
  market: BusyMarket;
  bare: { url: string; pid: number };
}

async function answersOf({ controlPlane, renter }: BusyMarket, paths: readonly string[]) {
  return Promise.all(
    paths.map(async (path) => {
      const headers = { Authorization: `Bearer ${renter.token ?? ''}` };
      const answer = await fetch(`${controlPlane.url}${path}`, { headers });
      return { path, body: await answer.text(), etag: answer.headers.get('etag') ?? undefined };
    }),
  );
}

async function compare(name: string, { market, bare }: Sides, path: string, etag?: string) {
  const ours: number[] = [];
  const theirs: number[] = [];
  const credential = { Authorization: `Bearer ${market.renter.token ?? ''}` };
  const known = (tag: string) => (etag === undefined ? {} : { 'If-None-Match': tag });
  const limit = caller(`${bare.url}${path}`, bare.pid, { ...credential, ...known('"same"') });
  const { controlPlane } = market;
  const own = caller(`${controlPlane.url}${path}`, controlPlane.pid, { ...credential, ...known(etag ?? '') });
  const [ofLimit, ofOwn] = [await requestsFor(limit), await requestsFor(own)];
  for (let round = 0; round < ROUNDS; round++) {
    theirs.push(await limit(ofLimit));
    ours.push(await own(ofOwn));
  }
  const [us, bareUs] = [median(ours), median(theirs)];
  return {
    [`${name}, us`]: tenth(us),
    [`${name}, bare us`]: tenth(bareUs),
    [`${name}, ratio`]: hundredth(bareUs / us),
  };
}

/** Sends that many requests and returns the processor time of one in us. */
type Call = (amount: number) => Promise<number>;

function caller(url: string, pid: number, headers: Record<string, string>): Call {
  return async (amount) => {
    const before = cpuMsOf(pid);
    const result = await autocannon({ url, connections: CONNECTIONS, amount, headers });
    if (result.errors > 0 || result['4xx'] + result['5xx'] > 0) throw new Error(`${url} was not answered`);
    return ((cpuMsOf(pid) - before) / amount) * US;
  };
}

/** Warms up, and returns how many requests take one round. */
async function requestsFor(call: Call): Promise<number> {
  const within = (ms: number, us: number) =>
    Math.min(Math.ceil((ms * US) / us / CONNECTIONS) * CONNECTIONS, MOST_REQUESTS);
  const first = await call(2 * CONNECTIONS);
  return within(ROUND_MS, await call(within(WARM_UP_MS, first)));
}

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
const tenth = (value: number) => Math.round(value * 10) / 10;
const hundredth = (value: number) => Math.round(value * 100) / 100;
