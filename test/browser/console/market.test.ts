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
  await page.getByText(`${ROWS + 3} offers`).waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await rows.nth(ROWS + 2).waitFor();
  await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
  expect(new Set(reads.map((read) => read.get('limit')))).toEqual(new Set([String(ROWS)]));

  await page.getByLabel('GPUs', { exact: true }).selectOption({ label: `1 (${ROWS + 2})` });
  await page.waitForURL('**/market?count=1');
  await page.getByText(`${ROWS + 2} offers`).waitFor();
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
  await window.close();
});
