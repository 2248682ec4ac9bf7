import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { loseAnswers } from '../../harness/lost-answers.js';
import { StripeDouble } from '../../harness/stripe-double.js';

let stripe: StripeDouble;
let test: TestConsole;
let offer: string;
let template: string;
beforeAll(async () => {
  stripe = await StripeDouble.start();
  test = await TestConsole.start({ stripe: stripe.settings });
  const agent = await test.control.host({ gpus: 1 });
  offer = await test.control.offer(agent);
  const env = [{ key: 'TOKEN', value: 'hidden', secret: true }];
  template = await test.control.template({ name: 'vLLM', mode: ['ssh'], env });
});
afterAll(async () => {
  await test.stop();
  await stripe.stop();
});

const said = ({ page }: ConsoleWindow) => page.getByText('The same button asks again, and nothing is done twice.');
/** What the tab keeps of requests. */
const kept = ({ page }: ConsoleWindow) =>
  page.evaluate<[string, string][]>(
    `Object.entries(sessionStorage).filter(([name]) => name.startsWith('gpurent.request.'))`,
  );

it('deploys one instance if the answer is lost, also after a reload, and keeps no secret', async () => {
  const renter = await test.control.renter(100_000_000);
  const window = await test.open(renter);
  const { page } = window;
  window.expectComplaints(/Failed to load resource/);
  const lost = await loseAnswers(page, '/v1/instances');
  const button = page.locator('aside').getByRole('button', { name: 'Deploy' });
  const fill = async () => {
    await window.goTo(`/deploy?offer=${offer}&template=${template}`);
    await page.getByLabel('TOKEN', { exact: true }).fill('swordfish');
  };
  await fill();
  await page.waitForSelector('aside button:enabled');
  await button.click();
  await said(window).waitFor();
  await window.checkAccess();
  await window.shoot('deploy-unanswered');
  const [entry] = await kept(window);
  expect(entry?.join()).toMatch(/^gpurent\.request\.[0-9a-f]{64},/);
  expect(entry?.join()).not.toContain('swordfish');
  // Its only GPU is taken now, by this very deploy.
  await fill();
  await said(window).waitFor();
  lost.end();
  await button.click();
  await page.waitForURL('**/instances/*-*');
  const { items } = await renter.api.get<{ items: { id: string }[] }>('/v1/instances');
  expect(page.url()).toContain(items[0]?.id);
  expect(items).toHaveLength(1);
  expect(new Set(lost.keys).size).toBe(1);
  expect(await kept(window)).toEqual([]);
  await window.close();
});

it('opens one page to pay if the answer is lost and the dialog was closed, and another for another amount', async () => {
  const window = await test.open(await test.control.renter(0));
  const { page } = window;
  window.expectComplaints(/Failed to load resource/, /^asked https:\/\/checkout\.stripe\.com\//);
  await page.route('https://checkout.stripe.com/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<h1>The page of the provider</h1>' }),
  );
  const before = stripe.sessions.length;
  const lost = await loseAnswers(page, '/v1/billing/checkout-session');
  await window.goTo('/billing?pay=true');
  await page.getByRole('button', { name: 'Pay $25.00' }).click();
  await said(window).waitFor();
  lost.end();
  await page.getByLabel('Amount in dollars').fill('30');
  await said(window).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Add money' }).first().click();
  await said(window).waitFor();
  await page.getByRole('button', { name: 'Pay $25.00' }).click();
  await page.getByText('The page of the provider').waitFor();
  expect(stripe.sessions.length).toBe(before + 1);
  await window.goTo('/billing?pay=true');
  await page.getByRole('button', { name: 'Pay $25.00' }).click();
  await page.getByText('The page of the provider').waitFor();
  expect(stripe.sessions.length).toBe(before + 2);
  await window.close();
});
