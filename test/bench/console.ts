import type { BrowserContext } from 'playwright-core';
import { startChromium } from '../harness/chromium.js';
import { BarePage } from './bare-page.js';
import type { Benchmark } from './benchmark.js';
import { foundBusyMarket } from './busy-market.js';
import { median, openUntilRest, signedIn, visit } from '../harness/page-visit.js';

const INSTANCES = 25;
const ROUNDS = 9;
/** From the third visit on, Chromium has compiled code in its cache. */
const UNCOUNTED_VISITS = 3;

/**
 * Measures the processor time of the main thread until the page Instances is at rest with 25 instances, in ms, beside a page of React that
 * renders the same elements from constants, in alternating rounds: of a first visit, and of a later one, for which the browser has kept
 * the files. `ratio` is ours over the bare one's: 2 is the limit.
 */
export const consolePage: Benchmark = async () => {
  const market = await foundBusyMarket(INSTANCES);
  const browser = await startChromium();
  let bare: BarePage | undefined;
  try {
    const home = market.controlPlane.url.replace('127.0.0.1', 'localhost');
    const makeContext = () => signedIn(browser, home, market.renter.token ?? '');
    const ours = `${home}/instances`;
    bare = await bareOf(await makeContext(), ours);
    const pages: Pages = { ours, bare: bare.url };
    return {
      ...report('first visit', await firstVisits(makeContext, pages)),
      ...report('later visit', await laterVisits(makeContext, pages)),
    };
  } finally {
    bare?.stop();
    await browser.close();
    await market.stop();
  }
};

type Pages = Record<'ours' | 'bare', string>;
type Times = Record<'ours' | 'bare', number[]>;
type MakeContext = () => Promise<BrowserContext>;

async function bareOf(context: BrowserContext, url: string): Promise<BarePage> {
  const page = await context.newPage();
  await openUntilRest(page, url);
  const bare = await BarePage.like(page);
  await context.close();
  return bare;
}

/** A context has files and code of its own, so a new one has neither. */
async function firstVisits(makeContext: MakeContext, pages: Pages): Promise<Times> {
  const times: Times = { ours: [], bare: [] };
  for (let round = 0; round < ROUNDS; round++)
    for (const side of ['ours', 'bare'] as const) {
      const context = await makeContext();
      times[side].push(await mainMsOf(context, pages[side]));
      await context.close();
    }
  return times;
}

async function laterVisits(makeContext: MakeContext, pages: Pages): Promise<Times> {
  const times: Times = { ours: [], bare: [] };
  const contexts = { ours: await makeContext(), bare: await makeContext() };
  for (let round = 0; round < UNCOUNTED_VISITS + ROUNDS; round++)
    for (const side of ['ours', 'bare'] as const) {
      const ms = await mainMsOf(contexts[side], pages[side]);
      if (round >= UNCOUNTED_VISITS) times[side].push(ms);
    }
  return times;
}

/** Returns the processor time of the main thread until the page at this address is at rest, in ms. */
async function mainMsOf(context: BrowserContext, url: string): Promise<number> {
  const { mainMs } = await visit(context, url, async (page) => {
    const rows = await page.locator('main li').count();
    if (rows !== INSTANCES) throw new Error(`${url} shows ${rows} instances`);
  });
  return mainMs;
}

function report(what: string, { ours, bare }: Times): Record<string, number> {
  const [ms, bareMs] = [median(ours), median(bare)];
  return {
    [`${what}, ms`]: Math.round(ms),
    [`${what}, bare ms`]: Math.round(bareMs),
    [`${what}, ratio`]: Math.round((ms / bareMs) * 100) / 100,
  };
}
