import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole } from '../../harness/console.js';
import { statusIs } from '../../harness/control-plane.js';

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('asks before unsaved settings of an instance are lost, and only then', async () => {
  const { control } = test;
  const renter = await control.renter();
  const [offer_id, template_id] = [await control.offer(await control.host()), await control.template()];
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10 });
  await statusIs(renter.api, id, 'running');
  const window = await test.open(renter);
  const { page } = window;
  const tab = (name: string) =>
    page.getByRole('navigation', { name: 'Parts of the instance' }).getByRole('link', { name });
  const question = page.getByRole('alertdialog', { name: 'Leave without saving the label and the limits' });
  const most = page.getByLabel('At most, in $');
  await window.goTo(`/instances/${id}?tab=settings`);
  await most.fill('5');
  await tab('Cost').click();
  await question.waitFor();
  await window.checkAccess('[role=alertdialog]');
  await question.getByRole('button', { name: 'Keep it as it is' }).click();
  await question.waitFor({ state: 'detached' });
  expect(await most.inputValue()).toBe('5');
  // What is taken back is no change.
  await most.fill('');
  await tab('Cost').click();
  await page.waitForURL('**?tab=cost');
  await tab('Settings').click();
  await most.fill('6');
  await page.getByRole('button', { name: 'Save the label and the limits' }).click();
  await page.getByText('The settings are saved').waitFor();
  await tab('Cost').click();
  await page.waitForURL('**?tab=cost');
  await tab('Settings').click();
  await most.fill('7');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Billing' }).click();
  await question.getByRole('button', { name: 'Leave' }).click();
  await page.waitForURL('**/billing');
  expect(await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).toMatchObject({ max_charge_micro: 6_000_000 });
  await window.close();
});
