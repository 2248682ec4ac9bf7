import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { operatorsPages } from '../../harness/console-pages.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import { openUntilRest } from '../../harness/page-visit.js';
import { grownBy } from '../../harness/grown-store.js';
import { growFleet, MACHINE_ID, ORGANIZATION_ID, type FleetSize } from '../../harness/large-fleet.js';

/** More of each than any page of a list has. */
const SIZE: FleetSize = {
  machines: 520,
  organizations: 520,
  instances: 1040,
  commands: 120,
  quarantined: 120,
  ignored: 120,
  credited: 120,
  templates: 520,
  payments: 520,
  disputes: 20,
  suspended: 20,
  acts: 520,
  days: 30,
};
/** The longest page of the API. */
const MOST_ROWS = 500;
const MOST_REQUESTS = 12;
const MOST_BYTES = 700_000;

let test: TestConsole;
let operator: Renter;
beforeAll(async () => {
  test = await TestConsole.start();
  const agent = await test.control.host({ gpus: 8 });
  const renter = await test.control.renter();
  const body = { offer_id: await test.control.offer(agent), template_id: await test.control.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  grow();
});
afterAll(() => test.stop());

function grow(): void {
  test.control.core.platform.store.transact((tx) => growFleet(grownBy(tx), SIZE, tx.now));
}

/** Returns the answers of the API that a page reads until it is at rest, one of each address: some are read again meanwhile. */
async function readsOf(window: ConsoleWindow, path: string): Promise<string[]> {
  const asked = await openUntilRest(window.page, path);
  const reads = asked.filter((request) => new URL(request.url()).pathname.startsWith('/v1/'));
  const last = new Map(reads.map((request) => [request.url(), request]));
  return Promise.all([...last.values()].map(async (request) => (await (await request.response())?.text()) ?? ''));
}

/** Returns the length of the longest list in an answer. */
function longestList(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? value.length : 0;
  return Math.max(own, ...Object.values(value).map(longestList));
}

it('reads a bounded part of a marketplace of any size for each page', async () => {
  const window = await test.open(operator);
  for (const { path } of operatorsPages({ machine: MACHINE_ID, organization: ORGANIZATION_ID })) {
    const reads = await readsOf(window, path);
    const bytes = reads.reduce((sum, text) => sum + text.length, 0);
    const rows = Math.max(...reads.map((text) => longestList(JSON.parse(text || 'null'))));
    expect({ path, isBounded: reads.length <= MOST_REQUESTS && rows <= MOST_ROWS && bytes <= MOST_BYTES }).toEqual({
      path,
      isBounded: true,
    });
  }
  await window.close();
});

it('shows three of each kind that needs an act, on request ten, and how many more there are', async () => {
  const window = await test.open(operator);
  const { page } = window;
  await window.goTo('/operator');
  const needs = page.getByRole('listitem');
  await needs.filter({ hasText: 'And 117 more of these.' }).first().waitFor();
  const away = needs.filter({ hasText: 'And 517 more of these.' });
  await away.getByRole('link', { name: 'All of these' }).waitFor();
  expect(await needs.filter({ hasText: /rack-\d+ is away/ }).count()).toBe(3);
  await away.getByRole('button', { name: 'Show 7 more' }).click();
  expect(await needs.filter({ hasText: /rack-\d+ is away/ }).count()).toBe(10);
  await page.getByRole('table', { name: 'GPUs by model' }).getByText('NVIDIA L40S').waitFor();
  await page
    .getByRole('table', { name: 'Revenue of the last whole day by GPU model' })
    .getByText('NVIDIA L40S')
    .waitFor();
  await window.checkAccess();
  await window.shoot('operator-large');
  await needs.filter({ hasText: 'And 510 more of these.' }).getByRole('link', { name: 'All of these' }).click();
  await page.waitForURL('**/operator/machines?need=machine_away');
  const states = page.getByRole('table', { name: 'Machines' }).locator('tbody tr td:nth-of-type(1)');
  await expect.poll(async () => [...new Set(await states.allInnerTexts())]).toEqual(['away', 'away, 1 GPU unhealthy']);
  await page.getByLabel('Needs an act').selectOption('lost and not removed');
  await page.getByText('No machine is like this: lost and not removed.').waitFor();
  await window.checkAccess();
  await window.close();
});
