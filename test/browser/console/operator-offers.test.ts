import { afterAll, beforeAll, expect, it } from 'vitest';
import type { components } from '../../../client/api/index.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs } from '../../harness/control-plane.js';

type Template = components['schemas']['Template'];

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

async function openAsOperator(): Promise<ConsoleWindow> {
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  return test.open(operator);
}

const priceOf = async (id: string) =>
  (await test.control.operator.get<{ price_per_hour_micro: number }>(`/v1/offers/${id}`)).price_per_hour_micro;

it('changes many prices by the GPU, says which instances keep theirs, and tries again what failed', async () => {
  const [one, other] = [await test.control.host({ name: 'one', gpus: 4 }), await test.control.host({ name: 'other' })];
  const [single, double] = [await test.control.offer(one), await test.control.offer(one, 2, 3_000_000)];
  const [withdrawn, foreign] = [await test.control.offer(one), await test.control.offer(other)];
  const renter = await test.control.renter();
  const body = { offer_id: single, template_id: await test.control.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const window = await openAsOperator();
  const { page } = window;
  await window.goTo(`/operator/machines/${one.hostId}`);
  await page.getByRole('link', { name: 'Change its prices' }).press('Enter');
  const table = page.getByRole('table', { name: 'Offers on the market' });
  const question = page.getByRole('alertdialog');
  expect(await page.getByRole('button', { name: 'Reprice 0 offers' }).isDisabled()).toBe(true);
  await table.getByText('1 at $1.00/h').waitFor();
  expect(await table.getByRole('row').count()).toBe(4);
  await page.getByRole('button', { name: 'Choose all 3 that are shown' }).press('Enter');
  await page.getByText('The instance that rents them keeps its price').waitFor();
  await page.getByRole('button', { name: 'Reprice 3 offers' }).press('Enter');
  await page.getByText('Give a price, or one of the disk.').waitFor();
  await page.getByLabel('New price in dollars per hour').fill('1.250001');
  await table.getByText('$2.500002/h').waitFor();
  await window.checkAccess();
  await window.shoot('operator-prices');
  window.expectComplaints(/404|409/);
  // The page has no time to hear of it.
  await page.route(`**/v1/operator/offers/${withdrawn}`, async (route) => {
    await test.control.operator.delete(`/v1/operator/offers/${withdrawn}`).catch(() => undefined);
    await route.continue();
  });
  const inTheWay = `**/v1/operator/offers/${double}`;
  await page.route(inTheWay, (route) =>
    route.fulfill({ status: 409, json: { code: 'CONFLICT', message: 'not now', request_id: 'r' } }),
  );
  await page.getByLabel('New price in dollars per hour').press('Enter');
  await question.getByText('Change the prices of 3 offers').waitFor();
  await question.getByText('$1.250001/h for each GPU of an offer.').waitFor();
  await window.checkAccess();
  await question.getByRole('button', { name: 'Keep it as it is' }).click();
  expect([await priceOf(single), await priceOf(double)]).toEqual([1_000_000, 3_000_000]);
  await page.getByRole('button', { name: 'Reprice 3 offers' }).click();
  await question.getByRole('button', { name: 'Reprice' }).click();
  await page.getByRole('button', { name: 'Try again with 2 offers' }).waitFor();
  await table.getByText('no offer with this id is on the market').waitFor();
  await table.getByRole('row', { name: '2 × Fake GPU' }).getByText('not now').waitFor();
  expect([await priceOf(single), await priceOf(double)]).toEqual([1_250_001, 3_000_000]);
  await window.shoot('operator-prices-failed');
  await page.unroute(inTheWay);
  await page.getByRole('button', { name: 'Try again with 2 offers' }).click();
  await question.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('button', { name: 'Try again with 1 offer', exact: true }).waitFor();
  await table.getByRole('row', { name: '2 × Fake GPU' }).getByText('repriced', { exact: true }).waitFor();
  expect([await priceOf(double), await priceOf(foreign)]).toEqual([2_500_002, 1_000_000]);
  const kept = await renter.api.get<InstanceBody>(`/v1/instances/${id}`);
  expect(kept['price_per_hour_micro']).toBe(1_000_000);
  await page.getByLabel('GPU model').selectOption('Fake GPU');
  await page.waitForURL('**model=Fake*');
  // With another filter nothing is chosen, and nothing is left of what has failed.
  await page.getByRole('button', { name: 'Reprice 0 offers' }).waitFor();
  expect(await table.getByText('no offer with this id is on the market').count()).toBe(0);
  await window.close();
});

it('withdraws an offer for good, and its instances stay', async () => {
  const offerId = await test.control.offer(await test.control.host({ name: 'leaving' }));
  const window = await openAsOperator();
  const { page } = window;
  await window.goTo('/operator/offers');
  await page.getByRole('button', { name: 'Withdraw: 1 × Fake GPU of leaving' }).press('Enter');
  const question = page.getByRole('alertdialog', { name: 'Withdraw 1 × Fake GPU of leaving for good' });
  await question.getByText('Instances that were deployed on it stay, at their price.').waitFor();
  await question.getByRole('button', { name: 'Withdraw' }).press('Enter');
  const row = page.getByRole('table', { name: 'Offers' }).getByRole('row', { name: 'leaving' });
  await row.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Withdrawn' }).press('Enter');
  await row.getByText('withdrawn').waitFor();
  expect(await test.control.operator.get(`/v1/offers/${offerId}`)).toMatchObject({ state: 'withdrawn' });
  await window.close();
});

it('makes, changes and withdraws a system template with the editor of renters', async () => {
  const window = await openAsOperator();
  const { page } = window;
  const listed = async () =>
    (await test.control.operator.get<{ items: Template[] }>('/v1/operator/templates')).items.filter(({ name }) =>
      name.startsWith('Official'),
    );
  await window.goTo('/operator/templates');
  await page.getByRole('link', { name: 'New system template' }).first().press('Enter');
  await page.getByLabel('Name', { exact: true }).fill('Official');
  await page.getByLabel('Image', { exact: true }).fill('registry.example.com/official:1');
  await page.getByLabel('recommended').press('Space');
  await page.getByRole('button', { name: 'Add a variable' }).press('Enter');
  await page.getByLabel('Variable', { exact: true }).fill('MODE');
  await page.getByLabel('Value', { exact: true }).fill('fast');
  await window.checkAccess();
  await window.shoot('operator-template-editor');
  expect(await page.getByLabel('Who sees it').count()).toBe(0);
  await page.getByRole('button', { name: 'Create the template' }).press('Enter');
  await page.waitForURL('**/operator/templates');
  const row = page.getByRole('table', { name: 'System templates' }).getByRole('row', { name: 'Official' });
  await row.getByText('recommended').waitFor();
  await window.checkAccess();
  await window.shoot('operator-templates');
  await row.getByRole('link', { name: 'Official' }).press('Enter');
  await page.getByLabel('coming soon').press('Space');
  await page.getByLabel('Purpose').fill('For everybody');
  await page.getByRole('link', { name: 'Cancel' }).press('Enter');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Keep it as it is' }).press('Enter');
  await page.getByRole('button', { name: 'Save the template' }).press('Enter');
  await row.getByText('recommended, coming soon').waitFor();
  expect(await listed()).toMatchObject([
    {
      description: 'For everybody',
      visibility: 'system',
      recommended: true,
      coming_soon: true,
      env: [
        {
          key: 'MODE',
          value: 'fast',
          secret: false,
        },
      ],
    },
  ]);
  await row.getByRole('button', { name: 'Withdraw: Official' }).press('Enter');
  const question = page.getByRole('alertdialog', { name: 'Withdraw Official from all renters for good' });
  await question.getByText('Instances of it go on.').waitFor();
  await question.getByRole('button', { name: 'Withdraw' }).press('Enter');
  // What a dialog covers counts as gone already while it is asked.
  await expect.poll(listed).toEqual([]);
  await row.waitFor({ state: 'detached' });
  await window.close();
});
