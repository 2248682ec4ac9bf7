import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { sessionCookie } from '../../harness/chromium.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import type { Renter } from '../../harness/control-plane.js';

let test: TestConsole;
let ann: Renter;
let instanceOfAnn: string;

beforeAll(async () => {
  test = await TestConsole.start();
  ann = await test.control.renter(3_000_000);
  const offer_id = await test.control.offer(await test.control.host({ gpus: 2 }));
  const template_id = await test.control.template({ name: 'vLLM', mode: ['ssh'] });
  const body = { offer_id, template_id, disk_gb: 10, label: 'of Ann' };
  instanceOfAnn = (await ann.api.post<InstanceBody>('/v1/instances', body)).id;
});
afterAll(() => test.stop());

const LIVE = '[data-connection=live]';

/** Signs somebody else in in the browser of a window, as another tab of it would. */
function signIn({ context }: ConsoleWindow, renter: Renter): Promise<void> {
  return context.addCookies([sessionCookie(test.home, renter.api.token ?? '')]);
}

async function join(renter: Renter, role: string): Promise<void> {
  const invite = { email: renter.email, role };
  const { token } = await ann.api.post<{ token: string }>('/v1/orgs/current/invites', invite);
  await renter.api.post(`/v1/invites/${token}/accept`);
}

it('shows nothing of one person under the name of another who has signed in in another tab', async () => {
  const bob = await test.control.renter(7_000_000);
  const window = await test.open(ann);
  const { page } = window;
  window.expectComplaints(/403|404|ERR_/);
  await window.goTo(`/instances/${instanceOfAnn}?tab=settings`);
  await page.waitForSelector('h1:text-is("of Ann")');
  await signIn(window, bob);
  await page.evaluate('dispatchEvent(new Event("visibilitychange"))');
  await page.waitForSelector('header >> text=$7.00');
  expect(await page.getByText('of Ann').count()).toBe(0);
  expect(new URL(page.url()).search).toBe('?tab=settings');
  await window.close();
});

it('notices at once that another tab shows what belongs to somebody else', async () => {
  const bob = await test.control.renter(7_000_000);
  const window = await test.open(ann);
  window.expectComplaints(/403|ERR_/);
  await window.goTo('/team');
  await window.page.evaluate('window.isHers = true');
  await signIn(window, bob);
  const other = await window.context.newPage();
  await other.goto('/market');
  await other.waitForSelector('header >> text=$7.00');
  await window.page.waitForSelector('header >> text=$7.00');
  await window.page.waitForFunction('!window.isHers');
  await window.close();
});

it('asks at each new connection whose it is, also in an organization to which both belong', async () => {
  const bob = await test.control.renter(7_000_000);
  await join(bob, 'viewer');
  const window = await test.openFor(ann, ann.organizationId);
  const { page, context } = window;
  window.expectComplaints(/ERR_/);
  await window.goTo('/team');
  await page.evaluate('window.isHers = true');
  await context.setOffline(true);
  await page.getByText('Your browser is offline since').waitFor();
  await signIn(window, bob);
  await context.setOffline(false);
  await page.getByText('You are a viewer of').waitFor();
  await page.waitForFunction('!window.isHers');
  await window.close();
});

it('goes on in the next organization, at the same address, once its member was removed from the first', async () => {
  const bob = await test.control.renter(0);
  await join(bob, 'member');
  const window = await test.openFor(bob, ann.organizationId);
  const { page } = window;
  window.expectComplaints(/403|ERR_/);
  await window.goTo('/market?gpu=H100');
  await page.waitForSelector('header button:has-text("Renter")');
  await ann.api.delete(`/v1/orgs/current/members/${bob.userId}`);
  await page.waitForSelector('header >> text=$0.00');
  await page.waitForSelector(LIVE, { state: 'attached' });
  expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe('/market?gpu=H100');
  await window.close();
});

it('opens a page of the organization that a link names, for this tab alone and if its reader is a member', async () => {
  const bob = await test.control.renter(0);
  await join(bob, 'member');
  const window = await test.openFor(bob, bob.organizationId);
  const { page } = window;
  window.expectComplaints(/403|ERR_/);
  const shows = (money: string) => page.waitForSelector(`header >> text=${money}`);
  await window.goTo(`/billing?tab=transactions&active_organization=${ann.organizationId}`);
  await shows('$3.00');
  await page.getByText('in this tab, as the link says.').waitFor();
  expect(new URL(page.url()).search).toBe('?tab=transactions');
  await page.reload();
  await shows('$3.00');
  const other = await window.context.newPage();
  await other.goto('/billing');
  await other.waitForSelector('header >> text=$0.00');
  // An organization of others is left again, for the one that Bob has chosen, whichever he joined first.
  await page.evaluate(
    `sessionStorage.removeItem('gpurent.organization'); localStorage.setItem('gpurent.organization', '${ann.organizationId}')`,
  );
  const stranger = await test.control.renter(9_000_000);
  await window.goTo(`/billing?active_organization=${stranger.organizationId}`);
  await page.waitForURL((url) => url.search === '');
  await shows('$3.00');
  expect(new URL(page.url()).pathname).toBe('/billing');
  await window.close();
});

it('keeps what was typed for whoever has typed it, and for nobody else', async () => {
  const [bob, cid] = [await test.control.renter(), await test.control.renter()];
  const window = await test.open(bob);
  const { page } = window;
  window.expectComplaints(/ERR_/);
  const name = page.getByLabel('Name', { exact: true });
  const drafts = () => page.evaluate('JSON.stringify(sessionStorage)');
  await window.goTo('/keys?add=api');
  await name.fill('key of Bob');
  await window.goTo('/keys?add=api');
  expect(await name.inputValue()).toBe('key of Bob');
  // What nobody can read is no draft.
  await window.runBeforePages(`
    if (sessionStorage.break) for (const key of Object.keys(sessionStorage)) sessionStorage.setItem(key, '{');
  `);
  await page.evaluate('sessionStorage.break = "yes"');
  await window.goTo('/keys?add=api');
  expect(await name.inputValue()).toBe('');
  await page.evaluate('sessionStorage.removeItem("break")');
  await name.fill('key of Bob');
  await signIn(window, cid);
  await window.goTo('/keys?add=api');
  expect(await name.inputValue()).toBe('');
  expect(await drafts()).not.toContain('key of Bob');
  await window.close();
});

it('keeps nothing that was typed over a sign-out, also of a form that is still open', async () => {
  const bob = await test.control.renter();
  const window = await test.open(bob);
  const { page } = window;
  window.expectComplaints(/ERR_/);
  await window.goTo('/keys?add=api');
  await page.getByLabel('Name', { exact: true }).fill('key of Bob');
  // The form covers the menu.
  await page.evaluate(`document.querySelector('header button').click()`);
  await page.getByRole('menuitem', { name: 'Sign out' }).dispatchEvent('click');
  await page.waitForURL('**/sign-in');
  expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain('key of Bob');
  await window.close();
});

it('leads somebody without an organization to a new one, and claims nothing about their role', async () => {
  const eve = await test.control.renter(0);
  test.control.dissolve(eve);
  const window = await test.open(eve);
  const { page } = window;
  window.expectComplaints(/403/);
  for (const path of ['/instances', '/billing', '/team', '/keys']) {
    await page.goto(path);
    await page.getByRole('heading', { name: 'You belong to no organization' }).waitFor();
    expect(await page.locator('[role=alert]').count(), path).toBe(0);
  }
  expect(await page.getByText('Not for your role').count()).toBe(0);
  expect(await page.locator('header').getByText('Balance').count()).toBe(0);
  expect(await page.getByText('not told of changes').count()).toBe(0);
  await window.checkAccess();
  await window.shoot('no-organization');
  await page.goto('/market?gpu=H100');
  await page.getByRole('button', { name: 'New organization' }).click();
  await page.getByLabel('Name').fill('Evening');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.waitForSelector('header button:has-text("Evening")');
  await page.waitForSelector(LIVE, { state: 'attached' });
  await window.close();
});

it('says that a sign-out has failed, and tries it again', async () => {
  const window = await test.open(await test.control.renter());
  const { page } = window;
  window.expectComplaints(/500|401|ERR_/);
  await window.goTo('/instances');
  const body = JSON.stringify({ code: 'INTERNAL', message: 'not now', request_id: 'request-1' });
  await page.route('**/v1/auth/sign-out', (route) =>
    route.fulfill({ status: 500, contentType: 'application/json', body }),
  );
  await page.click('header button');
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'you may still be signed in: not now' }).waitFor();
  await window.checkAccess();
  await window.shoot('sign-out-failed');
  await page.unroute('**/v1/auth/sign-out');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.waitForURL('**/sign-in');
  await window.close();
});

it('shows a private page to nobody who goes back after a sign-out', async () => {
  const dan = await test.control.renter(5_000_000);
  const window = await test.open(dan);
  const { page } = window;
  window.expectComplaints(/401|ERR_/);
  await window.goTo('/profile');
  const tell = (type: string) =>
    page.evaluate(`dispatchEvent(new PageTransitionEvent('${type}', { persisted: true }))`);
  // As a browser does that keeps the page, and shows it again to whoever goes back.
  await tell('pagehide');
  expect(await page.evaluate('document.querySelector("main").checkVisibility()')).toBe(false);
  await page.context().clearCookies();
  await tell('pageshow');
  await window.reachSignIn('/profile');
  await window.close();
});

it('leads operators who rent nothing to the pages for operators', async () => {
  const olga = await test.control.renter(0);
  test.control.makeOperator(olga.userId);
  const window = await test.open(olga);
  const asked = window.page.waitForRequest((request) => new URL(request.url()).pathname === '/v1/instances');
  await window.page.goto('/');
  // One tells whether there is any.
  expect(new URL((await asked).url()).search).toBe('?limit=1');
  await window.page.waitForURL('**/operator');
  await window.page.getByRole('heading', { level: 1 }).waitFor();
  await window.page.goto('/market/');
  await window.page.getByRole('heading', { level: 1, name: 'Market' }).waitFor();
  await window.close();
});
