import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { closeWindows, openContext, sharedChromium } from '../harness/chromium.js';
import { TestControlPlane } from '../harness/control-plane.js';

const PASSWORD = 'a renter password';

interface Codes {
  device_code: string;
  user_code: string;
}

let test: TestControlPlane;
let browser: Browser;
let page: Page;
let elsewhere: Server;
beforeAll(async () => {
  test = await TestControlPlane.start();
  browser = await sharedChromium();
  page = await (await openContext(browser, { viewport: { width: 390, height: 780 } })).newPage();
  elsewhere = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(`<iframe src="${home()}/device/approve"></iframe>`);
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await closeWindows(browser);
  elsewhere.closeAllConnections();
  elsewhere.close();
  await test.stop();
});

const home = () => test.url.replace('127.0.0.1', 'localhost');

it('a person types a code by hand and approves it; a link fills in nothing, and no frame shows the question', async () => {
  const { email } = await test.renter(0);
  const codes = await test.api.post<Codes>('/v1/auth/device', { name: 'gpurent on laptop' });
  await page.goto(`${home()}/device?user_code=${codes.user_code}`);
  await page.fill('#email', email);
  await page.fill('#password', PASSWORD);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/device?user_code=*');
  expect(await page.inputValue('#user_code')).toBe('');
  await page.focus('#user_code');
  await page.keyboard.type(codes.user_code.toLowerCase().replace('-', ''));
  await page.keyboard.press('Enter');
  await page.waitForURL('**/device/approve');
  expect(await page.textContent('main')).toContain('gpurent on laptop');
  // A page elsewhere cannot lay something over it.
  const other = await page.context().newPage();
  await other.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`);
  expect(await other.frames()[1]?.locator('form').count()).toBe(0);
  await other.close();
  await page.click('text=Let it sign in');
  await page.waitForURL('**/device?done=device-approved');
  const { device_code } = codes;
  const { token } = await test.api.post<{ token: string }>('/v1/auth/device/token', { device_code });
  expect(await test.api.as(token).get('/v1/me')).toMatchObject({ user: { email } });
  await page.goto(`${home()}/account`);
  expect(await page.textContent('ul.sessions')).toContain('gpurent on laptop');
});
