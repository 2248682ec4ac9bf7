import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import { loseAnswers } from '../../harness/lost-answers.js';

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('says of credit that is taken back what happens, and leads to what operators have done to the organization', async () => {
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  const renter = await test.control.renter(5_000_000);
  await renter.api.request('PATCH', '/v1/orgs/current', { name: 'Acme' });
  const window = await test.open(operator);
  const { page } = window;
  await window.goTo(`/operator/organizations/${renter.organizationId}`);
  await page.getByRole('button', { name: 'Credit', exact: true }).press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('heading', { name: 'Credit Acme', exact: true }).waitFor();
  await dialog.getByLabel('Amount in dollars').fill('2.50');
  await dialog.getByRole('heading', { name: 'Credit Acme with $2.50', exact: true }).waitFor();
  expect(await dialog.getByText('its running instances are stopped').count()).toBe(0);
  await dialog.getByLabel('What to do').selectOption('take back');
  await dialog.getByRole('heading', { name: 'Take $2.50 back from Acme', exact: true }).waitFor();
  await dialog.getByText('If its balance is then zero or below, its running instances are stopped.').waitFor();
  await window.checkAccess();
  await window.shoot('operator-take-back');
  await dialog.getByLabel('Reason').fill('granted twice');
  await dialog.getByRole('button', { name: 'Credit' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.locator('main').getByText('$2.50').first().waitFor();

  await page.getByRole('link', { name: 'What operators have done' }).press('Enter');
  await page.waitForURL(`**/operator/audit?of=${renter.organizationId}`);
  const entry = page.getByRole('row').filter({ hasText: 'granted twice' });
  await entry.getByText(/amount: .*\$2\.50,/).waitFor();
  await entry.getByRole('link', { name: renter.organizationId, exact: true }).click();
  await page.waitForURL(`**/operator/organizations/${renter.organizationId}`);
  await window.close();
});

it('credits once if the answer is lost, also in a dialog that was opened again', async () => {
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  const renter = await test.control.renter(0);
  const path = `/v1/operator/organizations/${renter.organizationId}`;
  const window = await test.open(operator);
  const { page } = window;
  window.expectComplaints(/Failed to load resource/);
  const lost = await loseAnswers(page, `${path}/credits`);
  const dialog = page.getByRole('dialog');
  const credit = dialog.getByRole('button', { name: 'Credit' });
  const said = dialog.getByText('The same button asks again, and nothing is done twice.');
  const fill = async (reason: string) => {
    await page.getByRole('button', { name: 'Credit', exact: true }).click();
    await dialog.getByLabel('Amount in dollars').fill('3');
    await dialog.getByLabel('Reason').fill(reason);
  };
  await window.goTo(`/operator/organizations/${renter.organizationId}`);
  await fill('thanks');
  await credit.click();
  await said.waitFor();
  await window.checkAccess();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  lost.end();
  await fill('thanks');
  await said.waitFor();
  await credit.click();
  await dialog.waitFor({ state: 'detached' });
  expect(new Set(lost.keys).size).toBe(1);
  // What is asked for afterwards is another credit.
  await fill('thanks');
  expect(await said.count()).toBe(0);
  await credit.click();
  await dialog.waitFor({ state: 'detached' });
  expect(await operator.api.get(path)).toMatchObject({ balance_micro: 6_000_000 });
  await window.close();
});
