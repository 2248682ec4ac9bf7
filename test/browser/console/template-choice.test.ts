import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import type { Renter } from '../../harness/control-plane.js';

/** As many templates of strangers as there are to choose from. */
const MOST_PUBLIC = 100;

let test: TestConsole;
let renter: Renter;
let stranger: Renter;
let offer: string;

beforeAll(async () => {
  test = await TestConsole.start();
  [renter, stranger] = [await test.control.renter(), await test.control.renter()];
  offer = await test.control.offer(await test.control.host({ gpus: 1 }));
  await test.control.template({ name: 'vLLM', image: 'registry.example/vllm:1', mode: ['ssh'] });
});
afterAll(() => test.stop());

const make = async (who: Renter, name: string, visibility: 'public' | 'organization') =>
  (await who.api.post<{ id: string }>('/v1/templates', { name, image: 'registry.example/own:1', visibility })).id;

it('tells who has made a template, whatever it is called, those of the reader first', async () => {
  await stranger.api.request('PATCH', '/v1/orgs/current', { name: 'your organization' });
  const theirs = await make(stranger, 'Training', 'public');
  for (const [name, visibility] of [
    ['Training', 'organization'],
    ['shared', 'public'],
  ] as const)
    await make(renter, name, visibility);
  const window = await test.open(renter);
  const { page } = window;
  const templates = page.getByLabel('Template', { exact: true });
  const expected = [
    'Training (only for your organization)',
    'shared (public, by your organization)',
    'vLLM (by the operator)',
    'Training (public, by “your organization”)',
  ];
  await window.goTo('/market');
  await templates.locator('option').nth(4).waitFor({ state: 'attached' });
  expect(await templates.locator('option').allTextContents()).toEqual(['Any', ...expected]);
  expect(await page.getByRole('link', { name: 'page of templates' }).count()).toBe(0);

  await window.goTo(`/deploy?offer=${offer}&template=${theirs}`);
  await page.getByText('It is public, by “your organization”, and runs the image registry.example/own:1.').waitFor();
  await page.getByText('The operator has not checked it.').waitFor();
  expect(await templates.locator('option').allTextContents()).toEqual(expected);
  await window.shoot('deploy-stranger');
  await window.checkAccess();
  await templates.selectOption({ label: 'vLLM (by the operator)' });
  await page.getByText('It is by the operator, and runs the image registry.example/vllm:1.').waitFor();
  expect(await page.getByText('The operator has not checked it.').count()).toBe(0);
  await window.close();
});

it('reads no more than a page of what strangers publish, and the one that an address names', async () => {
  const window = await test.open(renter);
  const { page } = window;
  let publisher = stranger;
  for (let number = 0; number < MOST_PUBLIC; number += 1) {
    // Each organization may publish twenty.
    if (number % 20 === 0) publisher = await test.control.renter();
    await make(publisher, `a ${number}`, 'public');
  }
  const last = await make(stranger, 'z', 'public');
  const reads: URLSearchParams[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === '/v1/templates') reads.push(searchParams);
  });
  const options = page.getByLabel('Template', { exact: true }).locator('option');
  await window.goTo(`/deploy?offer=${offer}&template=${last}`);
  await page.locator('option:checked', { hasText: 'z (public, by ' }).waitFor({ state: 'attached' });
  // A page of the catalogue, beside what has been made before.
  const listed = await options.filter({ hasText: /^a \d+ \(public/ }).count();
  expect([listed > MOST_PUBLIC - 5, listed <= MOST_PUBLIC]).toEqual([true, true]);
  expect((await options.allTextContents()).filter((label) => label.endsWith('(by the operator)'))).toHaveLength(1);
  const asked = reads.map((read) => `${read.get('tab')}: ${read.get('limit')}`);
  expect([...new Set(asked)].sort()).toEqual(['own: 200', 'public: 100', 'system: 200']);
  await page.waitForSelector('aside button:enabled');
  await page.getByRole('link', { name: 'page of templates' }).waitFor();
  await window.goTo(`/market?template=${last}`);
  await page.getByText('1 offer, 1 for z').waitFor();
  await page.getByRole('link', { name: 'page of templates' }).waitFor();
  await window.checkAccess();

  window.expectComplaints(/404/);
  await window.goTo(`/deploy?offer=${offer}&template=${offer}`);
  await page.waitForSelector('main >> text=TEMPLATE_NOT_FOUND');
  await page.waitForSelector('aside >> text=Choose a template');
  await window.close();
});
