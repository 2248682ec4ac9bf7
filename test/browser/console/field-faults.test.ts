import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti me';

let test: TestConsole;
let renter: Renter;
beforeAll(async () => {
  test = await TestConsole.start();
  renter = await test.control.renter();
});
afterAll(() => test.stop());

/** Returns a refusal as the API answers it. */
function refusal(...details: { path: string; message: string }[]) {
  const message = details.map((each) => `${each.path}: ${each.message}`)[0];
  return { code: 'VALIDATION_FAILED', message, request_id: 'req_1', details };
}

/** Checks that a field has the focus and says what is wrong with it, until it is changed. */
async function checkFault(field: Locator, words: RegExp, better: string): Promise<void> {
  const page = field.page();
  const focused = page.locator(':focus');
  const id = await field.getAttribute('id');
  await eventually('the focus of the wrong field', async () => (await focused.getAttribute('id')) === id);
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  const described = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
  expect((await page.locator(described.map((each) => `[id="${each}"]`).join()).allTextContents()).join()).toMatch(
    words,
  );
  await field.fill(better);
  expect(await field.getAttribute('aria-invalid')).toBeNull();
}

it('shows what the API refuses at its field, until that is changed', async () => {
  const window = await test.open(renter);
  const { page } = window;
  const alert = page.getByRole('dialog').getByRole('alert');
  window.expectComplaints(/422|409/);

  await window.goTo('/webhooks?add=true');
  await page.getByLabel('Address').fill('https://me@example.com/hooks');
  await page.getByRole('button', { name: 'Create' }).click();
  await alert.getByText('url: ').waitFor();
  await checkFault(page.getByLabel('Address'), /user/, 'https://example.com/hooks');
  await alert.waitFor({ state: 'detached' });

  await window.goTo('/keys?add=api');
  const name = page.getByLabel('Name', { exact: true });
  await page.getByRole('button', { name: 'Create the key' }).click();
  await checkFault(name, /Give the key a name/, 'CI');
  await page.getByLabel('Addresses from which it works').fill('127.0.0.0/8\nnowhere');
  await page.getByRole('button', { name: 'Create the key' }).click();
  await checkFault(page.getByLabel('Addresses from which it works'), /address/, '127.0.0.0/8');
  const body = refusal({ path: 'spend_caps.day_micro', message: 'is too much' });
  await page.route('**/v1/api-keys', (route) => route.fulfill({ status: 422, json: body }), { times: 1 });
  await page.getByRole('button', { name: 'Create the key' }).click();
  await checkFault(page.getByLabel('Spent on this day (UTC), at most'), /is too much/, '25');

  await window.goTo('/keys?add=ssh');
  await page.getByLabel('Public key').fill('ssh-ed25519 nonsense');
  await page.getByRole('button', { name: 'Add the key' }).click();
  await checkFault(page.getByLabel('Public key'), /key/, PUBLIC_KEY);
  await window.close();
});

it('leads to the first of several wrong fields, and says the rest in the alert of the form', async () => {
  await renter.api.post('/v1/ssh-keys', { name: 'me', public_key: PUBLIC_KEY });
  const window = await test.open(renter);
  const { page } = window;
  window.expectComplaints(/422|409/);
  await window.goTo('/keys?add=ssh');
  const alert = page.getByRole('dialog').getByRole('alert');
  const [key, name] = [page.getByLabel('Public key'), page.getByLabel('Name', { exact: true })];
  await key.fill(PUBLIC_KEY);
  await page.getByRole('button', { name: 'Add the key' }).click();
  await alert.getByText('SSH_KEY_EXISTS').waitFor();
  expect(await page.locator('[aria-invalid]').count()).toBe(0);

  const body = refusal(
    { path: 'name', message: 'is too plain' },
    { path: 'public_key', message: 'is too short' },
    { path: 'public', message: 'is unknown' },
  );
  await page.route('**/v1/ssh-keys', (route) => route.fulfill({ status: 422, json: body }));
  await page.getByRole('button', { name: 'Add the key' }).click();
  await alert.getByText('public: is unknown').waitFor();
  expect(await alert.getByText('is too short').count()).toBe(0);
  await checkFault(key, /is too short/, `${PUBLIC_KEY}.`);
  expect(await name.getAttribute('aria-invalid')).toBe('true');
  await window.close();
});

it('does so for the limits and the schedule of an instance, and in a dialog of operators', async () => {
  const offer_id = await test.control.offer(await test.control.host());
  const template_id = await test.control.template();
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10 });
  await statusIs(renter.api, id, 'running');
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  const window = await test.open(renter);
  const { page } = window;
  window.expectComplaints(/422/);
  await window.goTo(`/instances/${id}?tab=settings`);
  await page.getByLabel('Stop at').fill('2020-01-01T00:00');
  await page.getByRole('button', { name: 'Save the label and the limits' }).click();
  await checkFault(page.getByLabel('Stop at'), /must be in the future/, '2030-01-01T00:00');
  await page.getByLabel('After idle minutes').fill('none');
  await page.getByRole('button', { name: 'Save the label and the limits' }).click();
  await checkFault(page.getByLabel('After idle minutes'), /Give whole minutes/, '10');
  for (let entry = 0; entry < 2; entry += 1) await page.getByRole('button', { name: 'Add a time' }).click();
  await page.getByLabel('What', { exact: true }).last().selectOption('start');
  await page.getByRole('button', { name: 'Save the schedule' }).click();
  await checkFault(page.getByLabel('At', { exact: true }).last(), /does the opposite/, '19:00');
  await window.close();

  const operators = await test.open(operator);
  operators.expectComplaints(/422/);
  await operators.goTo('/operator/machines');
  await operators.page.locator('main table tbody a').first().click();
  await operators.page.getByRole('button', { name: 'Schedule' }).click();
  const dialog = operators.page.getByRole('dialog');
  await dialog.getByLabel('From').fill('2030-01-02T00:00');
  await dialog.getByLabel('Until').fill('2030-01-01T00:00');
  await dialog.getByRole('button', { name: 'Schedule' }).click();
  await checkFault(dialog.getByLabel('Until'), /must be after/, '2030-01-03T00:00');
  await operators.close();
});
