import type { Browser, BrowserContext, Page, Request } from 'playwright-core';
import { eventually } from '../../scripts/eventually.js';
import { openContext, sessionCookie } from './chromium.js';

/** A page that has asked for nothing for this long has what it shows. */
const REST_MS = 300;

/** What a visit of a page costs until it is at rest. */
export interface Visit {
  /** Processor time of the main thread. */
  mainMs: number;
  /** The time from the request to the whole answer, of each request of the API. */
  apiMs: number[];
  /** The bytes of these answers. */
  apiBytes: number;
}

/** Opens a window in which somebody is signed in: it has files and code of its own. */
export async function signedIn(browser: Browser, home: string, token: string): Promise<BrowserContext> {
  const context = await openContext(browser, { viewport: { width: 1440, height: 900 } });
  await context.addCookies([sessionCookie(home, token)]);
  return context;
}

/** Opens an address in a new tab until it is at rest, lets `look` see it, and closes it. */
export async function visit(
  context: BrowserContext,
  url: string,
  look?: (page: Page) => Promise<void>,
): Promise<Visit> {
  const page = await context.newPage();
  const devTools = await context.newCDPSession(page);
  // Processor time: what else the machine does is not in it.
  await devTools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const asked = await openUntilRest(page, url);
  const { metrics } = await devTools.send('Performance.getMetrics');
  await look?.(page);
  const ofApi = asked.filter((request) => new URL(request.url()).pathname.startsWith('/v1/'));
  for (const request of ofApi) {
    const status = (await request.response())?.status() ?? 0;
    if (status >= 400 || status === 0) throw new Error(`${request.url()} is answered with ${status}`);
  }
  const sizes = await Promise.all(ofApi.map((request) => request.sizes()));
  const cost = {
    mainMs: (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN) * 1_000,
    apiMs: ofApi.map((request) => request.timing().responseEnd - request.timing().requestStart),
    apiBytes: sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0),
  };
  await page.close();
  return cost;
}

/** Opens an address and waits until the page has asked for nothing for a while and its main thread has nothing to do. Returns what it has asked. */
export async function openUntilRest(page: Page, url: string): Promise<Request[]> {
  const finished: Request[] = [];
  // Requests of the page before may end meanwhile; they are not among these.
  const open = new Set<Request>();
  let last = performance.now();
  const began = (request: Request) => {
    // The stream of events stays open.
    if (!request.url().endsWith('/v1/events')) open.add(request);
    last = performance.now();
  };
  const ended = (request: Request) => {
    if (open.delete(request)) finished.push(request);
    last = performance.now();
  };
  page.on('request', began).on('requestfinished', ended).on('requestfailed', ended);
  await page.goto(url);
  await eventually('the page to be at rest', () => open.size === 0 && performance.now() - last > REST_MS);
  await page.evaluate('new Promise((resolve) => requestIdleCallback(resolve))');
  page.off('request', began).off('requestfinished', ended).off('requestfailed', ended);
  return finished;
}

export const median = (values: readonly number[]) =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;
