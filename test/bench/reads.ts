import autocannon from 'autocannon';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Daemon } from '../../scripts/daemon.js';
import type { Benchmark } from './benchmark.js';
import { foundBusyMarket, type BusyMarket } from './busy-market.js';
import { cpuMsOf } from './measured-control-plane.js';

const BARE = fileURLToPath(new URL('./bare-fastify.js', import.meta.url));
const MACHINES = 25;
const CONNECTIONS = 50;
const ROUNDS = 5;
const REQUESTS = 2_000;
const US = 1_000;

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
    return results;
  } finally {
    await bare?.stop();
    await market.stop();
    rmSync(folder, { recursive: true, force: true });
  }
};

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
  for (let round = 0; round <= ROUNDS; round++) {
    theirs.push(await cost(`${bare.url}${path}`, bare.pid, { ...credential, ...known('"same"') }));
    const headers = { ...credential, ...known(etag ?? '') };
    ours.push(await cost(`${market.controlPlane.url}${path}`, market.controlPlane.pid, headers));
  }
  // The first round warms up.
  const [us, bareUs] = [median(ours.slice(1)), median(theirs.slice(1))];
  return {
    [`${name}, us`]: tenth(us),
    [`${name}, bare us`]: tenth(bareUs),
    [`${name}, ratio`]: hundredth(bareUs / us),
  };
}

/** Returns the processor time of one request in us. */
async function cost(url: string, pid: number, headers: Record<string, string>): Promise<number> {
  const before = cpuMsOf(pid);
  const result = await autocannon({ url, connections: CONNECTIONS, amount: REQUESTS, headers });
  if (result.errors > 0 || result['4xx'] + result['5xx'] > 0) throw new Error(`${url} was not answered`);
  return ((cpuMsOf(pid) - before) / REQUESTS) * US;
}

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
const tenth = (value: number) => Math.round(value * 10) / 10;
const hundredth = (value: number) => Math.round(value * 100) / 100;
