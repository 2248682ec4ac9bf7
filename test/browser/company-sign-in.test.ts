import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { returnUrl, setCompany } from '../harness/companies.js';
import { closeWindows, openContext, sharedChromium } from '../harness/chromium.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { TestIssuer } from '../harness/issuer.js';

let test: TestControlPlane;
let issuer: TestIssuer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
/** What the browser has complained of, such as a breach of the policy of a page. */
let complaints: string[];

beforeAll(async () => {
  test = await TestControlPlane.start();
  issuer = await TestIssuer.start([returnUrl(test)]);
  await setCompany(test, issuer.url, { domains: [{ domain: 'example.com' }] });
  browser = await sharedChromium();
});
afterAll(async () => {
  await closeWindows(browser);
  await test.stop();
  await issuer.stop();
});
beforeEach(async () => {
  context = await openContext(browser);
  page = await context.newPage();
  complaints = [];
  page.on('console', (message) => void complaints.push(message.text()));
  return () => context.close();
});

const home = () => test.url.replace('127.0.0.1', 'localhost');

it('leads to the company and back, across sites, and breaks no policy', async () => {
  issuer.person = { sub: 'ann', email: 'ann@example.com', email_verified: true, name: 'Ann' };
  await page.goto(`${home()}/account/password`);
  await page.click('text=Sign in with Acme');
  await page.waitForURL('**/account/password');
  await page.goto(`${home()}/account`);
  expect(await page.textContent('main')).toContain('You are signed in as Ann, ann@example.com.');
  expect((await context.cookies()).find(({ name }) => name === '__Host-gpurent-company')).toMatchObject({
    secure: true,
    httpOnly: true,
    sameSite: 'Lax',
    domain: 'localhost',
    path: '/',
  });
  expect(complaints).toEqual([]);
});

it('finds a company by an address, and links an account that exists', async () => {
  const renter = await test.renter(0);
  issuer.person = { sub: 'renter', email: renter.email, email_verified: true };
  await page.goto(`${home()}/sign-in`);
  await page.click('text=Sign in with another company');
  await page.fill('#email', renter.email);
  await page.keyboard.press('Enter');
  await page.click('text=Go on to the sign-in of your company');
  await page.click('text=Sign in to this account');
  await page.fill('#email', renter.email);
  await page.fill('#password', 'a renter password');
  await page.keyboard.press('Enter');
  await page.click('button:text("Link the accounts")');
  expect(await page.textContent('[role=status]')).toContain('The accounts are linked');
  await page.goto(`${home()}/account`);
  await page.click('text=Sign out');
  await page.click('text=Sign in with Acme');
  await page.waitForURL('**/account');
  expect(await page.textContent('main')).toContain(renter.email);
  expect(complaints).toEqual([]);
});
