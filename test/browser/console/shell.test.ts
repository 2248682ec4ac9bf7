import { statSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BUILT_CONSOLE, TestConsole } from '../../harness/console.js';

const MOST_SCRIPT_BYTES = 190 * 1_024;

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('loads at most 190 KB of script, as gzip, and asks nobody else for anything', async () => {
  const window = await test.open(await test.control.renter());
  const scripts = new Set<string>();
  window.page.on('response', (response) => {
    if (response.url().endsWith('.js')) scripts.add(new URL(response.url()).pathname);
  });
  await window.goTo('/');
  expect(new URL(window.page.url()).pathname).toBe('/instances');
  const bytes = [...scripts].reduce((sum, path) => sum + statSync(`${BUILT_CONSOLE}${path}.gz`).size, 0);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes).toBeLessThanOrEqual(MOST_SCRIPT_BYTES);
  await window.close();
});

it('sends those who are not signed in to the sign-in, and back', async () => {
  const renter = await test.control.renter();
  const window = await test.open(renter);
  window.expectComplaints(/401/);
  await window.context.clearCookies();
  await window.page.goto('/market?gpu=H100');
  await window.reachSignIn('/market?gpu=H100');
  await window.page.fill('#email', renter.email);
  await window.page.fill('#password', 'a renter password');
  await window.page.keyboard.press('Enter');
  await window.page.waitForURL('**/market?gpu=H100');
  await window.page.goto('/account');
  await window.page.click('text=Open the console');
  await window.page.waitForURL('**/instances');
  // The console would lead to the sign-in by itself, and could interrupt the visit.
  await window.page.goto('about:blank');
  await window.context.clearCookies();
  await window.page.goto('/sign-in');
  await window.page.fill('#email', renter.email);
  await window.page.fill('#password', 'a renter password');
  await window.page.keyboard.press('Enter');
  await window.page.waitForURL('**/instances');
  await window.close();
});

it('shows what is so without being asked, and says when it hears nothing', async () => {
  const renter = await test.control.renter(5_000_000);
  const window = await test.open(renter);
  const reads: string[] = [];
  const countOf = (path: string) => reads.filter((each) => each === path).length;
  window.page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    // Whoever has no instance is asked whether there ever was one.
    if (!search.includes('include_destroyed')) reads.push(pathname);
  });
  const give = (amount_micro: number) =>
    test.control.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, {
      amount_micro,
      reason: 'more',
    });
  // What happens between the first reads and the opening of the stream is seen, too.
  await window.page.route('**/v1/events', async (route) => {
    await window.page.waitForSelector('header >> text=$5.00');
    await give(1_000_000);
    await route.continue();
  });
  await window.goTo('/instances');
  await window.page.waitForSelector('header >> text=$6.00');
  await window.page.unroute('**/v1/events');
  await give(234_567);
  await window.page.waitForSelector('header >> text=$6.234567');
  // Only what the events concern was read again, and who the reader is once the stream was open.
  expect(['/v1/me', '/v1/events', '/v1/orgs/current', '/v1/instances'].map(countOf)).toEqual([2, 2, 3, 1]);
  window.expectComplaints(/ERR_|Failed to load resource/);
  await test.control.restart();
  await window.page.waitForSelector('text=has not been heard since');
  await window.page.waitForSelector('[data-connection=live]', { state: 'attached' });
  expect(await window.page.locator('text=has not been heard since').count()).toBe(0);
  await window.close();
});

it('says on a page of its own that nothing is at a mistyped address, as a 404', async () => {
  const window = await test.open(await test.control.renter());
  window.expectComplaints(/404/);
  const answer = await window.page.goto('/nothing-here?x=1');
  expect(answer?.status()).toBe(404);
  expect(answer?.headers()).toMatchObject({ vary: 'Accept, Accept-Encoding', 'x-frame-options': 'DENY' });
  await window.page.getByRole('heading', { name: 'Nothing here' }).waitFor();
  await window.page.getByRole('link', { name: 'Go to the instances' }).click();
  await window.page.waitForURL('**/instances');
  const current = window.page.getByRole('navigation', { name: 'Pages' }).locator('[aria-current=page]');
  for (const [path, title] of Object.entries({ '/deploy': 'Market', '/keys': 'Keys', '/webhooks': 'Webhooks' })) {
    await window.goTo(path);
    expect(await current.allTextContents()).toEqual([title]);
  }
  await window.close();
});

it('can be used by everybody, on a phone, too', async () => {
  const window = await test.open(await test.control.renter(), { width: 360, height: 740 });
  await window.goTo('/instances');
  await window.shoot('no-instances');
  await window.checkAccess();
  expect(await window.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await window.page.click('header button');
  await window.page.getByRole('menuitem', { name: 'Keys' }).click();
  await window.page.waitForURL('**/keys');
  expect(await window.page.evaluate('document.activeElement.id')).toBe('main');
  await window.close();
});

it.each(['/', '/instances/x', '/operator', '/market', '/market/', '/deploy/', '/keys/', '/profile/'])(
  'serves %s with its policy, compressed',
  async (path) => {
    const ask = (encoding: string) => fetch(test.control.url + path, { headers: { 'Accept-Encoding': encoding } });
    const answer = await ask('gzip, br;q=0');
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'",
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'content-encoding': 'gzip',
      vary: 'Accept-Encoding',
    });
    expect(await answer.text()).toContain('<div id="root">');
    expect((await ask('identity')).headers.get('content-encoding')).toBeNull();
    const served = { br: 'br', '*': 'br', 'br;q=0, *': 'gzip', 'gzip, *;q=0': 'gzip', '*;q=0': null };
    for (const [accepted, encoding] of Object.entries(served))
      expect((await ask(accepted)).headers.get('content-encoding'), accepted).toBe(encoding);
  },
);

it('sends its page once: a browser that has it is told that it is the same', async () => {
  const ask = (headers: Record<string, string>) => fetch(`${test.control.url}/market/`, { headers });
  const first = await ask({ 'Accept-Encoding': 'br' });
  const etag = first.headers.get('etag') ?? '';
  expect(first.headers.get('cache-control')).toBe('no-cache');
  const again = await ask({ 'Accept-Encoding': 'br', 'If-None-Match': etag });
  expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
  expect(again.headers.get('content-security-policy')).toContain("default-src 'none'");
  // Another form is another thing.
  expect((await ask({ 'Accept-Encoding': 'gzip', 'If-None-Match': etag })).status).toBe(200);
  expect((await ask({ 'Accept-Encoding': 'br', 'If-None-Match': '"other"' })).status).toBe(200);
});

it('serves assets for ever, and nothing beside them; what is not there stays an error of the API', async () => {
  const at = (path: string, init?: RequestInit) => fetch(test.control.url + path, init);
  const page = await (await at('/')).text();
  const [, script = ''] = /src="(\/assets\/[^"]+\.js)"/.exec(page) ?? [];
  const asset = await at(script);
  expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(asset.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  for (const path of ['/assets/none.js', '/assets/..%2findex.html', '/v1/nothing', '/nothing', '/v1/operator/none']) {
    const answer = await at(path);
    expect([401, 404], path).toContain(answer.status);
    expect(answer.headers.get('content-type'), path).toContain('application/json');
  }
  expect((await at('/instances', { method: 'POST' })).status).toBe(405);
  const html = { headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } };
  for (const path of ['/v1/nothing', '/v1/operator/none', '/docs/none', '/assets/none.js', '/v1'])
    expect((await at(path, html)).headers.get('content-type'), path).toContain('application/json');
  expect((await at('/nothing', { method: 'POST', ...html })).headers.get('content-type')).toContain('application/json');
  const refusesHtml = { headers: { Accept: 'application/json, text/html;q=0' } };
  expect((await at('/nothing', refusesHtml)).headers.get('content-type')).toContain('application/json');
  expect((await at('/', { method: 'HEAD' })).status).toBe(200);
});
