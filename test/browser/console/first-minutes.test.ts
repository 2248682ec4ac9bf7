import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import { makePublicKey } from '../../harness/keys.js';

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('leads a new renter from a key over money to a machine, live', async () => {
  const renter = await test.control.renter(0);
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/instances');
  const next = page.locator('[aria-current=step]');
  await next.getByRole('link', { name: 'Add a key' }).waitFor();
  await window.shoot('first-minutes');
  await window.checkAccess();
  await next.getByRole('link', { name: 'Add a key' }).click();
  await page.getByRole('dialog', { name: 'Add an SSH key' }).waitFor();
  await renter.api.post('/v1/ssh-keys', { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') });
  await window.goTo('/instances');
  // The steps have the one main button.
  expect(await page.getByRole('link', { name: 'Rent a machine' }).count()).toBe(0);
  await next.getByRole('link', { name: 'Add money' }).click();
  await page.getByRole('dialog', { name: 'Add money' }).waitFor();
  await window.goTo('/instances');
  const credit = { amount_micro: 1_234_567, reason: 'a start' };
  await test.control.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, credit);
  await next.getByRole('link', { name: 'See what is free' }).waitFor();
  expect(await page.getByText('Your balance is $1.234567').count()).toBe(1);
  await window.shoot('first-minutes-machine');
  await next.getByRole('link').click();
  await page.waitForURL('**/market');
  await window.close();
});

it('tells a member who may not pay who adds money, and has no button that leads nowhere', async () => {
  const [owner, member] = [await test.control.renter(0), await test.control.renter(0)];
  const invite = { email: member.email, role: 'member' };
  const { token } = await owner.api.post<{ token: string }>('/v1/orgs/current/invites', invite);
  await member.api.post(`/v1/invites/${token}/accept`);
  const window = await test.openFor(member, owner.organizationId);
  const { page } = window;
  const who = page.getByText('An admin of the organization, or a member with the role billing, adds money.');
  await window.goTo('/instances');
  await page.getByRole('listitem').filter({ hasText: 'Add money' }).filter({ has: who }).waitFor();
  expect(await page.getByRole('link', { name: 'Add money' }).count()).toBe(0);
  await window.checkAccess();
  await window.goTo('/billing?pay=true');
  await who.waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
  await window.checkAccess();
  await window.close();
});
