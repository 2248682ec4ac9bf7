import { eventually } from '../../scripts/eventually.js';
import type { PageAddress } from './console-pages.js';
import type { ConsoleWindow } from './console.js';

export const PHONE = 360;

/** Throws unless nothing of a page is still being read, nothing has failed, nothing is wider than a phone or cut, and nothing has jumped. */
export async function isWhole(window: ConsoleWindow, path: string): Promise<void> {
  const { page } = window;
  await eventually(`${path} to be read`, async () => (await page.locator('main [aria-label^=Loading]').count()) === 0);
  const alerts = await page.locator('main [role=alert]').allTextContents();
  if (alerts.length > 0) throw new Error(`${path}: ${alerts.join()}`);
  await checkWidth(window, path);
  await window.checkShifts(path);
  const flaws = await page.evaluate<string[]>(FIND_FLAWS);
  if (flaws.length > 0) throw new Error(`${path}: ${flaws.join()}`);
}

/** Finds what is cut on a phone without a hint that there is more of it; it runs in the browser. */
const FIND_FLAWS = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const said = (words) => (each) => words + ': ' + each.textContent.slice(0, 40);
  const isOutside = (inner, outer) => inner.left < outer.left - 1 || inner.right > outer.right + 1;
  const hasMore = ({ scrollLeft, scrollWidth, clientWidth }) => scrollWidth - clientWidth - scrollLeft > 1;
  const linesOf = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
  };
  const isBroken = (link) => linesOf(link.lastChild) > link.textContent.trim().split(/\\s+/).length;
  return [
    ...all('[data-for] a').filter((link) => link.offsetWidth > 0 && isBroken(link)).map(said('a word is broken')),
    ...all('header').filter((line) => !line.closest('main') && line.offsetHeight > 60).map(said('more than a row')),
    ...all('main nav > [data-active=true]')
      .filter((tab) => isOutside(tab.getBoundingClientRect(), tab.parentElement.getBoundingClientRect()))
      .map(said('the tab is out of sight')),
    ...all('main :is(nav:has(> [data-active]), [role=region])')
      .filter((box) => hasMore(box) && !box.dataset.more?.includes('after'))
      .map(said('no hint of more')),
    ...all('main [role=region] tr > *').filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map(said('wider than its cell')),
    ...all('main [role=region] tbody tr > :first-child').filter((cell) => cell.offsetWidth < 120).map(said('too narrow')),
  ];
})()`;

async function checkWidth({ page }: ConsoleWindow, path: string): Promise<void> {
  const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
  if (width > PHONE) throw new Error(`${path} is ${width} wide`);
}

/** Loads the console anew for each page, as wide as a phone. Throws unless each is whole. */
export async function loadAll(window: ConsoleWindow, pages: readonly PageAddress[]): Promise<void> {
  for (const { path, heading } of pages) {
    await window.page.goto(path);
    await window.page.getByRole('heading', { name: heading }).first().waitFor();
    await isWhole(window, path);
  }
}

/** Goes from page to page, as wide as a phone, without loading the console again. Throws unless each is whole. */
export async function visitAll(window: ConsoleWindow, pages: readonly PageAddress[]): Promise<void> {
  const [first, ...others] = pages;
  if (first) await loadAll(window, [first]);
  for (const address of others) await visit(window, address);
}

async function visit(window: ConsoleWindow, { path, heading }: PageAddress): Promise<void> {
  await window.moveTo(path);
  await window.page.getByRole('heading', { name: heading }).first().waitFor();
  await isWhole(window, path);
}

/** Goes from page to page, as wide as a phone; each reads everything anew. Throws unless each is whole. */
export async function visitAnew(window: ConsoleWindow, pages: readonly PageAddress[]): Promise<void> {
  await window.goTo('/profile');
  for (const address of pages) await readAnew(window, address);
}

async function readAnew(window: ConsoleWindow, address: PageAddress): Promise<void> {
  await window.forget();
  await visit(window, address);
}

const FAILURES = [
  { status: 500, code: 'INTERNAL', message: 'something went wrong' },
  // It is sent again, at once.
  { status: 503, code: 'UNAVAILABLE', message: 'the control plane is starting', headers: { 'Retry-After': '0' } },
];

/**
 * Goes to each page while the API fails for what `reads` matches; the first one is loaded, so that the shell fails, too. Throws unless it
 * says so with the id of a request, keeps its layout, and goes on when the API works again.
 */
export async function visitWhileFailing(
  window: ConsoleWindow,
  pages: readonly PageAddress[],
  reads: RegExp,
): Promise<void> {
  const { page } = window;
  window.expectComplaints(/500|503/);
  for (const [index, { path }] of pages.filter(({ readsNothing }) => !readsNothing).entries()) {
    const { status, headers = {}, ...failure } = FAILURES[index % FAILURES.length] ?? { status: 500 };
    const body = JSON.stringify({ ...failure, request_id: `request-${index}` });
    if (index > 0) await window.forget();
    await page.route(reads, (route) => route.fulfill({ status, headers, contentType: 'application/json', body }));
    await (index > 0 ? window.startMove(path) : page.goto(path));
    await page.locator('main h1').waitFor();
    await page.locator('main [role=alert]').first().getByText(`request-${index}`).waitFor();
    await checkWidth(window, path);
    await page.unroute(reads);
    await eventually(`${path} to go on`, async () => {
      const again = page.locator('main').getByRole('button', { name: 'Try again' }).first();
      if ((await again.count()) > 0) await again.click({ timeout: 1_000 }).catch(() => undefined);
      return (await page.locator('main [role=alert]').count()) === 0;
    });
  }
}

/** Goes to each page, and takes the network away from it. Throws unless it says so, keeps what it shows, and goes on once it is back. */
export async function visitOffline(window: ConsoleWindow, pages: readonly PageAddress[]): Promise<void> {
  const { page, context } = window;
  window.expectComplaints(/ERR_INTERNET_DISCONNECTED|ERR_ABORTED|Failed to load resource/);
  const offline = page.getByText('Your browser is offline since');
  const isLive = () => page.waitForSelector('[data-connection=live]', { state: 'attached' });
  await window.goTo('/profile');
  for (const address of pages) {
    await readAnew(window, address);
    await isLive();
    await context.setOffline(true);
    await offline.waitFor();
    await page.getByRole('heading', { name: address.heading }).first().waitFor();
    await checkWidth(window, address.path);
    await context.setOffline(false);
    await offline.waitFor({ state: 'detached' });
    await isLive();
  }
}
