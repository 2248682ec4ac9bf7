import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import type { Renter } from '../../harness/control-plane.js';

const ROWS = 50;

let test: TestConsole;
let renter: Renter;

beforeAll(async () => {
  test = await TestConsole.start();
  const agent = await test.control.host({ gpus: 8 });
  for (let each = 0; each < ROWS + 2; each += 1) await test.control.offer(agent, 1, 1_000_000 + each);
  await test.control.offer(agent, 8, 900_000);
  await test.control.offer(await test.control.host({ gpus: 1, name: 'desktops', vmCapable: true }), 1, 2_000_000);
  renter = await test.control.renter(10_000_000);
});
afterAll(() => test.stop());

it('shows the market page by page, filtered and sorted by its address', async () => {
  const window = await test.open(renter);
  const { page } = window;
  const reads: URLSearchParams[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === '/v1/offers') reads.push(searchParams);
  });
  await window.goTo('/market');
  const rows = page.locator('main li');
  await rows.nth(ROWS - 1).waitFor();
  expect(await rows.count()).toBe(ROWS);
  expect(await rows.first().textContent()).toContain('8 ×');
  const ofOneGpu = await rows.nth(1).textContent();
  expect(ofOneGpu).toContain('2 CPU cores, 8.0 GiB memory');
  expect(ofOneGpu).toContain('The whole machine: 16 CPU cores, 64 GiB memory');
  await page.getByText(`${ROWS + 4} offers`).waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await rows.nth(ROWS + 3).waitFor();
  await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
  expect(new Set(reads.map((read) => read.get('limit')))).toEqual(new Set([String(ROWS)]));

  await page.getByLabel('GPUs', { exact: true }).selectOption({ label: `1 (${ROWS + 3})` });
  await page.waitForURL('**/market?count=1');
  await page.getByText(`${ROWS + 3} offers`).waitFor();
  await page.getByLabel('GPUs', { exact: true }).selectOption({ label: '8 (1)' });
  await page.getByText('1 offer', { exact: true }).waitFor();
  await rows.nth(1).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: /^Fake GPU/ }).click();
  await page.waitForURL('**/market?count=8&gpu=Fake**');
  await page.reload();
  await rows.first().waitFor();
  expect(await rows.count()).toBe(1);

  await page.goto('/market?sort=gpus');
  await rows.nth(ROWS - 1).waitFor();
  expect(reads.at(-1)?.get('sort')).toBe('gpus_desc');

  const price = page.getByLabel('At most, in $/h');
  await price.fill('cheap');
  await price.press('Enter');
  await page.getByText('Give an amount such as 1.50.').waitFor();
  await price.fill('$1.000049');
  await price.press('Enter');
  await page.waitForURL('**/market?sort=gpus&price=1.000049');
  await page.getByText(`${ROWS + 1} offers`).waitFor();
  reads.length = 0;
  await page.getByRole('button', { name: 'Show more' }).click();
  await rows.nth(ROWS).waitFor();
  expect(reads.map((read) => [read.get('max_price_per_hour_micro'), read.has('cursor')])).toEqual([['1000049', true]]);
  await page.goBack();
  await page.getByText(`${ROWS + 4} offers`).waitFor();
  expect(await price.inputValue()).toBe('');
  await page.getByRole('button', { name: 'Runs virtual machines' }).click();
  await page.getByText('1 offer', { exact: true }).waitFor();

  // What nothing has says which of it to leave out.
  await page.goto('/market?price=1&vm=true&count=1');
  const looser = page.locator('main li');
  await looser.nth(1).waitFor();
  expect(await looser.allTextContents()).toEqual([
    'Any price: 1 offer',
    'Also machines that run no virtual machines: 1 offer',
  ]);
  await window.shoot('market-nothing');
  await page.getByRole('link', { name: 'Any price' }).click();
  await page.waitForURL('**/market?vm=true&count=1');
  await page.getByText('desktops').waitFor();
  expect(await page.getByRole('button', { name: 'Runs virtual machines' }).getAttribute('aria-pressed')).toBe('true');
  await window.close();
});
