import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContext, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { closeWindows, openContext, sharedChromium } from '../harness/chromium.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const PASSWORD = 'a renter password';

let test: TestControlPlane;
let browser: Browser;
let elsewhere: Server;
let context: BrowserContext;
let page: Page;
let renter: Renter;
/** What the browser has complained of, such as a breach of the policy of a page. */
let complaints: string[];

beforeAll(async () => {
  test = await TestControlPlane.start();
  browser = await sharedChromium();
  elsewhere = createServer((request, response) => {
    const path = decodeURIComponent(request.url?.slice(1) ?? '');
    response.setHeader('Content-Type', 'text/html');
    response.end(`<form id="f" method="post" action="${home()}${path}"><input name="form_token" value="x"></form>`);
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await closeWindows(browser);
  elsewhere.closeAllConnections();
  elsewhere.close();
  await test.stop();
});
beforeEach(async () => {
  renter = await test.renter(0);
  context = await openContext(browser, { viewport: { width: 390, height: 780 } });
  page = await context.newPage();
  complaints = [];
  page.on('console', (message) => void complaints.push(message.text()));
  return () => context.close();
});

const home = () => test.url.replace('127.0.0.1', 'localhost');
const sessionCookie = async () => (await context.cookies()).find(({ name }) => name === '__Host-gpurent');

async function signIn(): Promise<void> {
  await page.goto(`${home()}/sign-in`);
  await page.fill('#email', renter.email);
  await page.fill('#password', PASSWORD);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/account');
}

it('signs a person in by the keyboard, and out; the page breaks no policy', async () => {
  await page.goto(`${home()}/account/password`);
  expect(page.url()).toBe(`${home()}/sign-in?return_to=%2Faccount%2Fpassword`);
  expect(await page.evaluate('getComputedStyle(document.querySelector("main")).maxWidth')).not.toBe('none');
  await page.focus('#email');
  await page.keyboard.type(renter.email);
  await page.keyboard.press('Tab');
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/account/password');
  expect(await sessionCookie()).toMatchObject({ secure: true, httpOnly: true, sameSite: 'Lax', domain: 'localhost' });
  expect(await page.evaluate('document.cookie')).toBe('');
  await page.goto(`${home()}/account`);
  expect(await page.textContent('ul.sessions')).toContain('Chrome on Linux, from 127.0.0.1');
  await page.click('text=Sign out');
  expect(await page.textContent('[role=status]')).toBe('You are signed out.');
  expect(await sessionCookie()).toBeUndefined();
  expect(complaints).toEqual([]);
});

it('keeps what was typed, and goes to the first field that is wrong', async () => {
  await page.goto(`${home()}/sign-up`);
  await page.fill('#name', 'Ann <b>');
  await page.fill('#email', 'ann@example.com');
  await page.fill('#password', 'short');
  await page.click('button');
  expect(await page.textContent('[role=alert]')).toBe('Give a password of 12 to 256 characters.');
  expect(await page.inputValue('#name')).toBe('Ann <b>');
  expect(await page.evaluate('document.activeElement.id')).toBe('password');
  expect(await page.inputValue('#password')).toBe('');
});

it('lets pages of the control plane use the API, also its streams', async () => {
  await signIn();
  // A page of ours whose policy lets it send requests.
  await page.goto(`${home()}/docs/`);
  const status = (path: string, options: object) =>
    page.evaluate(`fetch(${JSON.stringify(path)}, ${JSON.stringify(options)}).then(({ status }) => status)`);
  expect(await status('/v1/me', {})).toBe(200);
  const made = { method: 'POST', body: '{"name": "x"}', headers: { 'Content-Type': 'application/json' } };
  expect(await status('/v1/orgs', made)).toBe(403);
  expect(await status('/v1/orgs', { ...made, headers: { ...made.headers, 'X-Same-Origin': '1' } })).toBe(201);
  const opened = `new Promise((resolve) => {
    const events = new EventSource('/v1/events');
    events.onopen = () => { events.close(); resolve('open'); };
    events.onerror = () => resolve('error');
  })`;
  expect(await page.evaluate(opened)).toBe('open');
});

it.each(['localhost', '127.0.0.1'])(
  'a page at another port of %s does nothing in the name of the person',
  async (host) => {
    await signIn();
    const { port } = elsewhere.address() as AddressInfo;
    for (const path of ['/sign-out', '/account/sessions/end-others', '/sign-in', '/v1/auth/sign-out']) {
      const evil = await context.newPage();
      await evil.goto(`http://${host}:${port}/${encodeURIComponent(path)}`);
      const sent: Request[] = [];
      evil.on('request', (request) => void sent.push(request));
      const answered = evil.waitForResponse(`${home()}${path}`);
      await evil.evaluate('document.getElementById("f").submit()');
      expect([401, 403], path).toContain((await answered).status());
      // The browser itself does not keep the cookie from another port.
      const { cookie = '' } = (await sent[0]?.allHeaders()) ?? {};
      expect(cookie.includes('ses_')).toBe(host === 'localhost');
      // Chromium may never close a page that is still on its way to another.
      await evil.waitForURL(`${home()}${path}`);
      await evil.close();
    }
    const evil = await context.newPage();
    await evil.goto(`http://${host}:${port}/`);
    const failed = `new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve('loaded');
    image.onerror = () => resolve('blocked');
    image.src = '${home()}/v1/me';
  })`;
    expect(await evil.evaluate(failed)).toBe('blocked');
    await evil.evaluate(`location.href = '${home()}/v1/me'`);
    await evil.waitForURL('**/v1/me');
    expect(await evil.textContent('body')).toMatch(/COOKIE_REFUSED|TOKEN_INVALID/);
    await page.goto(`${home()}/account`);
    expect(page.url()).toBe(`${home()}/account`);
  },
);
