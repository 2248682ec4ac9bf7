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
const CHANGES = 200;

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
    return { ...results, ...(await costsOfChanges(market)) };
  } finally {
    await bare?.stop();
    await market.stop();
    rmSync(folder, { recursive: true, force: true });
  }
};

/**
 * Measures what a read costs more after a change of what it shows, in us, than after a change of something else: of the instance itself,
 * of one of the listed instances, and of one of the listed offers. The other read is of an answer of about the same size.
 */
async function costsOfChanges({ controlPlane, renter, agents, instances, offers }: BusyMarket) {
  const [agent, id, offer, other] = [agents[0], instances[0], offers[0], instances[1]];
  if (!agent || id === undefined || offer === undefined || other === undefined) throw new Error('the market is empty');
  let price = 1_000;
  const report = () => agent.speak(id);
  const reprice = () =>
    controlPlane.operator.patch('/v1/operator/offers/{id}', {
      params: { path: { id: offer } },
      body: { price_per_hour_micro: ++price },
    });
  const [lists, market] = ['/v1/instances', '/v1/offers'];
  const changes = [
    { name: 'GET instance', change: report, shown: `/v1/instances/${id}`, unchanged: `/v1/instances/${other}` },
    { name: 'GET instances', change: report, shown: lists, unchanged: market },
    { name: 'GET offers', change: reprice, shown: market, unchanged: lists },
  ];
  const results: Record<string, number> = {};
  for (const { name, change, shown, unchanged } of changes) {
    const costOf = async (path: string) => {
      const before = controlPlane.cpuMs();
      for (let time = 0; time < CHANGES; time++) {
        await change();
        await renter.get(path);
      }
      return ((controlPlane.cpuMs() - before) / CHANGES) * US;
    };
    const differences: number[] = [];
    for (let round = 0; round < ROUNDS; round++) differences.push((await costOf(shown)) - (await costOf(unchanged)));
    results[`${name}, more after a change, us`] = tenth(median(differences));
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
