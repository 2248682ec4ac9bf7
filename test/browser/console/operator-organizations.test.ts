import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import { addApp } from '../../harness/second-factors.js';

const HOSTILE = '<b onclick=alert(1)>Acme';

let test: TestConsole;
let window: ConsoleWindow;
beforeAll(async () => {
  test = await TestConsole.start();
  window = await openAsOperator();
});
afterAll(async () => {
  await window.close();
  await test.stop();
});

async function openAsOperator(): Promise<ConsoleWindow> {
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  return test.open(operator);
}

async function renterOf(name: string): Promise<Renter> {
  const renter = await test.control.renter();
  await renter.api.request('PATCH', '/v1/orgs/current', { name });
  return renter;
}

it('finds an organization by its name or the address of a member, in the address of the page', async () => {
  const [acme, other] = [await renterOf(HOSTILE), await renterOf('Other')];
  const { page } = window;
  const table = page.getByRole('table', { name: 'Organizations' });
  await window.goTo('/operator/organizations');
  const field = page.getByLabel('Name, address of a member, or id');
  const find = async (text: string) => {
    await field.fill(text);
    await page.getByRole('button', { name: 'Find' }).click();
  };
  await find('<B ON');
  await page.waitForURL('**?find=*');
  await expect.poll(() => table.getByRole('link').allInnerTexts()).toEqual([HOSTILE]);
  await find(other.email.toUpperCase());
  await expect.poll(() => table.getByRole('link').allInnerTexts()).toEqual(['Other']);
  // What is found has an address: a reload shows it again, and the browser goes back to what was found before.
  await page.reload();
  await expect.poll(() => table.getByRole('link').allInnerTexts()).toEqual(['Other']);
  await page.goBack();
  await expect.poll(() => table.getByRole('link').allInnerTexts()).toEqual([HOSTILE]);
  await window.shoot('operator-organizations-found');
  await find(acme.email.slice(0, -12));
  await page.getByRole('link', { name: 'Look for it in the addresses of members' }).click();
  await expect.poll(() => table.getByRole('link').allInnerTexts()).toContain(HOSTILE);
  await window.checkAccess();
  await find(acme.organizationId);
  await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
});

/** Takes down the only public template that the tab shows; `count` is how many its organization has. */
async function takeDown(name: string, count: () => Promise<number>): Promise<void> {
  const { page } = window;
  await page.getByRole('navigation', { name: 'Parts of the organization' }).getByText('Templates').click();
  const rows = page.getByRole('table', { name: 'Templates' });
  await rows.getByText(name, { exact: true }).waitFor();
  expect(await rows.getByRole('button').count()).toBe(1);
  await rows.getByRole('button', { name: `Take down: ${name}` }).click();
  await page.getByRole('alertdialog').getByText('nobody can deploy it any more').waitFor();
  expect(await count()).toBe(2);
  await page.getByRole('alertdialog').getByRole('button', { name: 'Take down' }).click();
  await expect.poll(count).toBe(1);
  await rows.getByText(name, { exact: true }).waitFor({ state: 'detached' });
}

it('shows what an organization has without a secret, opens a dispute and stops an instance, each with a reason', async () => {
  const { control } = test;
  const renter = await renterOf('Disputed');
  const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'robot', kind: 'team' });
  await renter.api.post('/v1/templates', { name: 'Shared', image: 'shared:1', visibility: 'public' });
  await renter.api.post('/v1/templates', { name: 'Own', image: 'own:1', env: [{ key: 'A', value: 'kept-apart' }] });
  const offer_id = await control.offer(await control.host({ name: 'rack', gpus: 1 }));
  const body = { offer_id, template_id: await control.template(), disk_gb: 30 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const { page } = window;
  const dialog = page.getByRole('dialog');
  await window.goTo(`/operator/organizations/${renter.organizationId}`);
  for (const [tab, words] of [
    ['API keys', 'robot'],
    ['Templates', 'own:1'],
    ['Machines', 'rack'],
  ] as const) {
    await page.getByRole('link', { name: tab, exact: true }).last().click();
    await page.getByRole('table', { name: tab }).getByText(words).waitFor();
    const shown = await page.content();
    expect([shown.includes(secret), shown.includes('kept-apart')]).toEqual([false, false]);
  }
  await takeDown(
    'Shared',
    async () => (await renter.api.get<{ items: unknown[] }>('/v1/templates?tab=own')).items.length,
  );
  await page.getByRole('button', { name: 'Open dispute' }).click();
  await dialog.getByLabel('Reason').fill('the bank has called');
  await dialog.getByRole('button', { name: 'Open dispute' }).click();
  await page.getByText('disputes a payment').waitFor();
  expect(await renter.api.get('/v1/audit-log?action=dispute.open')).toMatchObject({
    items: [{ reason: 'the bank has called' }],
  });
  await page.goto(`/operator/organizations/${renter.organizationId}?tab=instances`);
  await page.getByRole('button', { name: `Stop: ${id}` }).click();
  await dialog.getByText(`Stop ${id.slice(0, 8)} of Disputed`).waitFor();
  await dialog.getByLabel('Reason').fill('it sends spam');
  await window.checkAccess();
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await statusIs(renter.api, id, 'stopped');
  await page.reload();
  await page.getByRole('table', { name: 'Instances' }).getByText('stopped').waitFor();
  await page.getByRole('button', { name: `Destroy: ${id}` }).click();
  await dialog.getByText(`Destroy ${id.slice(0, 8)} of Disputed and its 30 GB disk`).waitFor();
  await window.shoot('operator-organization-instances');
  await dialog.getByRole('button', { name: 'Keep it as it is' }).click();
  expect(await statusIs(renter.api, id, 'stopped')).toMatchObject({ id });
});

it('helps somebody who cannot sign in, and says of each act what follows', async () => {
  const { control } = test;
  const renter = await renterOf('Locked out');
  await addApp(control, renter.api);
  const { page } = window;
  const dialog = page.getByRole('dialog');
  const act = async (label: string, consequence: string) => {
    await page.getByRole('button', { name: label, exact: true }).click();
    await dialog.getByText(consequence).waitFor();
    await dialog.getByLabel('Reason').fill('asked by video call');
  };
  await window.goTo(`/operator/organizations/${renter.organizationId}`);
  await page.getByRole('table', { name: 'Members' }).getByRole('link').click();
  await page.waitForURL('**/operator/users?email=*');

  await act('End sessions', `End every session of ${renter.email}`);
  await dialog.getByLabel('Also revoke the API keys').check();
  await dialog.getByText(', and revoke the API keys').waitFor();
  await dialog.getByRole('button', { name: 'End sessions' }).click();
  await page.getByText('Ended sessions: 1. Revoked API keys: 0.').waitFor();
  expect((await renter.api.request('GET', '/v1/me')).status).toBe(401);

  await act('Reset password', `Make a link with which ${renter.email}`);
  await dialog.getByRole('button', { name: 'Reset password' }).click();
  await page.getByLabel('Link to a new password').waitFor();
  await window.checkAccess();
  const link = await window.keepSecret('Link to a new password');
  const token = new URL(link).searchParams.get('token');
  const reset = { token, new_password: 'another fine password' };
  expect((await control.api.request('POST', '/v1/auth/password-reset/confirm', reset)).status).toBe(204);

  await act('Remove second factors', 'in 24 hours');
  await dialog.getByRole('button', { name: 'Remove second factors' }).click();
  const removals = page.getByRole('table', { name: 'Second factors that will be removed' });
  await removals.getByText('asked by video call').waitFor();
  await window.checkAccess();
  await window.shoot('operator-user');
  await removals.getByRole('button', { name: 'Cancel the removal' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the removal' }).click();
  await removals.waitFor({ state: 'detached' });

  await act('Make operator', `Make ${renter.email} an operator`);
  await dialog.getByRole('button', { name: 'Make operator' }).click();
  await act('Withdraw operator', `Make ${renter.email} an ordinary user`);
  await dialog.getByRole('button', { name: 'Withdraw operator' }).click();
  await page.getByRole('button', { name: 'Make operator' }).waitFor();
  await page.getByRole('button', { name: 'Remove: ' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('table', { name: 'Users' }).waitFor();
  const { items } = await control.operator.get<{ items: unknown[] }>(`/v1/operator/users?email=${renter.email}`);
  expect(items).toEqual([]);
});
