import { randomUUID } from 'node:crypto';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { recordNote } from '../../../control-plane/services/events/timeline.js';
import { query } from '../../../control-plane/store/sql.js';
import { DAY_MS, HOUR_MS } from '../../../shared/time.js';
import { eventually } from '../../../scripts/eventually.js';
import { TestConsole } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';

/** More than a page has, less than two. */
const MANY = 150;
const PAGE = 100;

let test: TestConsole;
let renter: Renter;
beforeAll(async () => {
  test = await TestConsole.start();
  renter = await test.control.renter();
});
afterAll(() => test.stop());

const numbers = Array.from({ length: MANY }, (_, index) => String(index + 1).padStart(3, '0'));
const count = (rows: Locator, expected: number) =>
  eventually(`${expected} rows`, async () => (await rows.count()) === expected);

it('shows the templates page by page, and finds the last one by its words without the others', async () => {
  for (const number of numbers) {
    const body = { name: `mine ${number}`, image: `image:${number}`, description: 'a template' };
    await renter.api.post('/v1/templates', body);
  }
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/templates?tab=organization');
  const rows = page.locator('main li', { hasText: 'mine ' });
  await count(rows, PAGE);
  await page.getByRole('button', { name: 'Show more' }).press('Enter');
  await count(rows, MANY);
  expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0);
  await page.getByLabel('Find').fill('TEMPLATE image:150');
  await count(rows, 1);
  expect(await rows.innerText()).toContain('mine 150');
  await page.getByLabel('Find').fill('no such words');
  await page.locator('main').getByText('no such words').waitFor();
  await count(rows, 0);
  await window.close();
});

it('shows the members page by page', async () => {
  test.control.core.platform.store.transact((tx) => {
    for (const number of numbers) {
      const id = randomUUID();
      const [email, name] = [`member${number}@example.com`, `Member ${number}`];
      const user = { id, email, name, password_hash: '', created_at: tx.now, email_verified_at: null };
      tx.run(query.insertInto('users').values({ ...user, is_operator: 0 as const }));
      const membership = { organization_id: renter.organizationId, user_id: id, role: 'member' as const };
      tx.run(query.insertInto('memberships').values({ ...membership, joined_at: tx.now }));
    }
  });
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/team');
  const rows = page.getByRole('table', { name: 'Members' }).locator('tbody tr');
  await count(rows, PAGE);
  await page.getByRole('button', { name: 'Show more' }).press('Enter');
  await count(rows, MANY + 1);
  await window.close();
});

it('adds up what all use has cost, while a page of the charges is shown and when all are', async () => {
  const { control } = test;
  const agent = await control.host({ gpus: 1 });
  const body = { offer_id: await control.offer(agent), template_id: await control.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const { organizationId: organization_id } = renter;
  control.core.platform.store.transact((tx) => {
    const day = Math.floor(tx.now / DAY_MS) - 1;
    const charged = { organization_id, day, gpu_micro: 1_000_000, disk_micro: 1_000 };
    for (const number of numbers) {
      const key = { grouped_by: 'label' as const, key: `label ${number}`, instance_id: id };
      tx.run(query.insertInto('charge_days').values({ ...charged, ...key }));
    }
    const sums = { gpu_micro: MANY * 1_000_000, disk_micro: MANY * 1_000 };
    tx.run(query.insertInto('organization_days').values({ organization_id, day, ...sums }));
  });
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/billing?tab=spend&by=label');
  const rows = page.getByRole('table').locator('tbody tr');
  await count(rows, PAGE + 1);
  expect(await rows.last().innerText()).toMatch(/^Total, also of what is not shown\s[^]*150\.15/);
  await page.getByRole('button', { name: 'Show more' }).press('Enter');
  await count(rows, MANY + 1);
  expect(await rows.last().innerText()).toMatch(/^Total\s[^]*150\.15/);
  await window.close();
});

it('goes on to the first event of an instance, and to its first charge', async () => {
  const { control } = test;
  const agent = await control.host({ gpus: 1 });
  const body = { offer_id: await control.offer(agent), template_id: await control.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const { organizationId: organization_id } = renter;
  control.core.platform.store.transact((tx) => {
    for (let number = 1; number <= 510; number++) recordNote(tx, id, 'note', `note ${number}`);
    for (const number of numbers) {
      const hour = (Math.floor(tx.now / HOUR_MS) - Number(number)) * HOUR_MS;
      const charge = { kind: 'charge' as const, meter: 'gpu' as const, instance_id: id, amount_micro: -Number(number) };
      const row = { ...charge, id: randomUUID(), organization_id, hour, created_at: hour };
      tx.run(query.insertInto('transactions').values({ ...row, reason: null, author_id: null }));
    }
  });
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo(`/instances/${id}`);
  const events = page.locator('main ol > li');
  for (let shown = 50; shown <= 500; shown += 50) {
    await count(events, shown);
    await page.getByRole('button', { name: 'Show earlier events' }).press('Enter');
  }
  await events.getByText('note 1', { exact: true }).waitFor();
  await window.goTo(`/instances/${id}?tab=cost`);
  const charges = page.getByRole('table', { name: 'Charges' }).locator('tbody tr');
  await count(charges, PAGE);
  await page.getByRole('button', { name: 'Show older charges' }).press('Enter');
  await count(charges, MANY);
  await window.close();
});
