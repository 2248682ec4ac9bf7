import type BetterSqlite3 from 'better-sqlite3';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext } from 'playwright-core';
import { startChromium } from '../harness/chromium.js';
import { operatorsPages, rentersPages, type PageAddress, type PageIds } from '../harness/console-pages.js';
import { growFleet, LARGE, MACHINE_ID, ORGANIZATION_ID, type Grown } from '../harness/large-fleet.js';
import type { Benchmark } from './benchmark.js';
import { Fleet, type FleetFile } from './fleet.js';
import { median, signedIn, visit } from '../harness/page-visit.js';
import { addCharges, addPast, foundMarket } from './past-market.js';
import { recruit } from './recruits.js';

/** Hosts that are connected, without workloads: what the others do is not measured here. */
const CONNECTED = Number(process.env['BENCH_HOSTS'] ?? 1_000);
/** Which addresses are measured, as a regular expression; without it, all are. */
const PAGES = new RegExp(process.env['BENCH_PAGES'] ?? '');
const [PAST_INSTANCES, LEDGER_ROWS, CHARGED_INSTANCES] = [100_000, 500_000, 1_000];
/** From the third visit on, Chromium has compiled code in its cache. */
const UNCOUNTED_VISITS = 2;
const ROUNDS = 3;
const GOALS = { mainMs: 1_000, apiMs: 500 };

/**
 * Measures every page of the console with 10,000 machines and 50,000 instances, and a renter with a long history: the processor time of the main
 * thread until the page is at rest, the time of all its requests of the API together, and the bytes of their answers. The goals are 1,000
 * ms and 500 ms.
 */
export const operatorConsole: Benchmark = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-console-'));
  const market = await foundMarket({ GPURENT_GRPC_TLS: 'on' });
  const { controlPlane } = market;
  const browser = await startChromium();
  let fleet: Fleet | undefined;
  try {
    market.agent.close();
    await controlPlane.rewrite((database) => {
      growFleet(grown(database), LARGE, Date.now());
      addPast(database, PAST_INSTANCES, LEDGER_ROWS);
      addCharges(database, CHARGED_INSTANCES);
    });
    const file = await recruitAndOffer(market);
    fleet = await Fleet.connect(join(folder, 'fleet.json'), file, controlPlane.grpcAddress);
    const home = controlPlane.url.replace('127.0.0.1', 'localhost');
    const cold = performance.now();
    await controlPlane.operator.get('/v1/operator/overview');
    const first = Math.round(performance.now() - cold);
    const operator = await signedIn(browser, home, controlPlane.measuredOperator.token ?? '');
    const ids = await idsOf(market);
    const renter = await signedIn(browser, home, market.renter.token ?? '');
    return {
      'the first overview after a start, ms': first,
      ...(await measureAll(operator, home, operatorsPages(ids))),
      ...(await measureAll(renter, home, rentersPages(ids))),
    };
  } finally {
    fleet?.close();
    await browser.close();
    await controlPlane.stop();
    rmSync(folder, { recursive: true, force: true });
  }
};

function grown(database: BetterSqlite3.Database): Grown {
  return {
    exec: (sql) => void database.exec(sql),
    columnsOf: (table) => (database.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name),
  };
}

type Market = Awaited<ReturnType<typeof foundMarket>>;

async function recruitAndOffer({ controlPlane }: Market): Promise<FleetFile> {
  let file: FleetFile | undefined;
  await controlPlane.prepare(async (stopped) => {
    file = await recruit(stopped, CONNECTED);
  });
  if (!file) throw new Error('there are no hosts');
  for (const [index, { id }] of file.hosts.entries()) await controlPlane.offer(id, 1_000_000 + index);
  return file;
}

async function idsOf({ controlPlane, instanceId: instance }: Market): Promise<PageIds> {
  const params = { query: { limit: 1 } };
  const { items: offers } = await controlPlane.operator.get('/v1/operator/offers', { params });
  const { items: templates } = await controlPlane.operator.get('/v1/operator/templates', { params });
  const [offer = '', template = ''] = [offers[0]?.id, templates[0]?.id];
  const fleet = { machine: MACHINE_ID, organization: ORGANIZATION_ID, systemTemplate: template };
  return { offer, template, instance, ...fleet, user: 'renter@example.com' };
}

async function measureAll(
  context: BrowserContext,
  home: string,
  pages: readonly PageAddress[],
): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  for (const { path } of pages.filter((page) => PAGES.test(page.path))) {
    for (let round = 0; round < UNCOUNTED_VISITS; round++) await visit(context, home + path);
    const visits = [];
    for (let round = 0; round < ROUNDS; round++) visits.push(await visit(context, home + path));
    const name = path.replace(/[0-9a-f]{8}-[-0-9a-f]+/g, 'ID');
    const sums = visits.map(({ apiMs }) => apiMs.reduce((sum, ms) => sum + ms, 0));
    figures[`${name}, main thread, ms (goal ${GOALS.mainMs})`] = Math.round(median(visits.map(({ mainMs }) => mainMs)));
    figures[`${name}, API, ms (goal ${GOALS.apiMs})`] = Math.round(median(sums));
    figures[`${name}, requests of the API`] = median(visits.map(({ apiMs }) => apiMs.length));
    figures[`${name}, their answers, kB`] = Math.round(median(visits.map(({ apiBytes }) => apiBytes)) / 1_000);
    process.stderr.write(`${name} ${JSON.stringify(visits)}\n`);
  }
  return figures;
}
