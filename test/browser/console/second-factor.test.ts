import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiKey } from '../../../console/src/pages/keys/queries.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import type { Renter } from '../../harness/control-plane.js';
import { addApp, codeAt, nextCode, type App } from '../../harness/second-factors.js';

const PASSWORD = 'a renter password';
/** A proof is fresh for 15 minutes. */
const STALE_MS = 16 * 60_000;

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

async function openWithApp(): Promise<{ renter: Renter; window: ConsoleWindow; app: App }> {
  const renter = await test.control.renter();
  const app = await addApp(test.control, renter.api);
  return { renter, app, window: await test.open(renter) };
}

/** Follows the link of a refusal to the page that asks who it is, and gives what it asks for. */
async function prove({ page }: ConsoleWindow, app: App): Promise<void> {
  await page.getByRole('link', { name: 'Show that it is you' }).click();
  await page.waitForURL('**/account/prove?**');
  await page.fill('#password', PASSWORD);
  await page.fill('#code', nextCode(test.control, app));
  await page.keyboard.press('Enter');
}

it('is added from the account, asked for at the sign-in, and leads back into the console', async () => {
  const renter = await test.control.renter();
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/profile');
  await page.getByText('Your password alone lets you in').waitFor();
  await page.getByRole('link', { name: 'Add an app or a passkey' }).click();
  await page.getByRole('link', { name: 'Add an authenticator app' }).click();
  const secret = (await page.locator('code').first().textContent())?.replaceAll(' ', '') ?? '';
  await page.fill('#name', 'phone');
  await page.fill('#code', codeAt(secret, test.control.clock.now()));
  await page.keyboard.press('Enter');
  await page.getByText('recovery codes').first().waitFor();
  await window.goTo('/profile');
  await page.getByText('10 recovery codes are left').waitFor();
  await page.locator('header button').click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL('**/sign-in');
  window.expectComplaints(/401|ERR_/);
  await page.goto('/keys');
  await window.reachSignIn('/keys');
  await page.fill('#email', renter.email);
  await page.fill('#password', PASSWORD);
  await page.keyboard.press('Enter');
  await page.fill('#code', nextCode(test.control, { secret }));
  await page.keyboard.press('Enter');
  await page.waitForURL('**/keys');
  await page.getByRole('heading', { name: 'Your SSH keys' }).waitFor();
  await window.close();
});

it('a form that needs a proof still has what was typed when one comes back, and forgets it once it is closed', async () => {
  const { renter, app, window } = await openWithApp();
  const { page } = window;
  window.expectComplaints(/403|ERR_/);
  test.control.advance(STALE_MS);
  await window.goTo('/keys?add=api');
  const name = page.getByLabel('Name', { exact: true });
  await name.fill('CI');
  await page.getByLabel('it may only read').press('Space');
  await page.getByLabel('Spent on this day (UTC), at most').fill('12.345678');
  const create = page.getByRole('button', { name: 'Create the key' });
  await create.press('Enter');
  await page.getByText('PROOF_REQUIRED').waitFor();
  await window.shoot('keys-proof');
  await window.checkAccess();
  await prove(window, app);
  await page.waitForURL('**/keys?add=api');
  expect(await name.inputValue()).toBe('CI');
  await create.press('Enter');
  await page.getByLabel('The secret of CI').waitFor();
  const [key] = (await renter.api.get<{ items: ApiKey[] }>('/v1/api-keys')).items;
  expect(key).toMatchObject({ name: 'CI', read_only: true });
  expect(await page.evaluate('JSON.stringify(sessionStorage)')).toBe('{}');
  await page.reload();
  await window.goTo('/keys?add=api');
  expect(await name.inputValue()).toBe('');
  await window.close();
});

it('keeps whom one makes an admin over the proof', async () => {
  const { renter, app, window } = await openWithApp();
  const member = await test.control.renter();
  const { token } = await renter.api.post<{ token: string }>('/v1/orgs/current/invites', { email: member.email });
  await member.api.post(`/v1/invites/${token}/accept`);
  const { page } = window;
  window.expectComplaints(/403|ERR_/);
  test.control.advance(STALE_MS);
  await window.goTo('/team?invite=true');
  const role = page.getByLabel('Role', { exact: true });
  await page.getByLabel('E-mail address').fill('new@example.com');
  await role.selectOption('admin');
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  await prove(window, app);
  await page.waitForURL('**/team?invite=true');
  expect(await page.getByLabel('E-mail address').inputValue()).toBe('new@example.com');
  expect(await role.inputValue()).toBe('admin');
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  await page.getByLabel('Link of the invitation').waitFor();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  test.control.advance(STALE_MS);
  await page.getByLabel(`Change role: ${member.email}`).click();
  await role.selectOption('admin');
  await page.getByRole('dialog').getByRole('button', { name: 'Change role' }).click();
  await prove(window, app);
  await page.waitForURL('**/team?role=**');
  expect(await role.inputValue()).toBe('admin');
  await page.getByRole('dialog').getByRole('button', { name: 'Change role' }).click();
  await page.getByRole('row').filter({ hasText: member.email }).getByText('admin', { exact: true }).waitFor();
  await window.close();
});

it('keeps a new webhook endpoint, and a changed address, over the proof', async () => {
  const { renter, app, window } = await openWithApp();
  const { page } = window;
  window.expectComplaints(/403|ERR_/);
  test.control.advance(STALE_MS);
  await window.goTo('/webhooks?add=true');
  const address = page.getByLabel('Address', { exact: true });
  await address.fill('https://hooks.example/one');
  const create = page.getByRole('button', { name: 'Create', exact: true });
  await create.click();
  await prove(window, app);
  await page.waitForURL('**/webhooks?add=true');
  expect(await address.inputValue()).toBe('https://hooks.example/one');
  await create.click();
  await page.getByRole('heading', { name: 'The endpoint is on' }).waitFor();
  const [endpoint] = (await renter.api.get<{ items: { id: string }[] }>('/v1/webhook-endpoints')).items;
  test.control.advance(STALE_MS);
  await window.goTo(`/webhooks/${endpoint?.id}`);
  await page.getByRole('link', { name: 'Change', exact: true }).click();
  await address.fill('https://hooks.example/other');
  const change = page.getByRole('dialog').getByRole('button', { name: 'Change', exact: true });
  await change.click();
  await prove(window, app);
  await page.waitForURL(`**/webhooks/${endpoint?.id}?change=true`);
  expect(await address.inputValue()).toBe('https://hooks.example/other');
  await change.click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('https://hooks.example/other', { exact: true }).waitFor();
  await window.close();
});

it('has the dialog of an operator’s act open again, with what was typed, after the proof', async () => {
  const { renter: operator, app, window } = await openWithApp();
  test.control.makeOperator(operator.userId);
  const renter = await test.control.renter(0);
  const { page } = window;
  window.expectComplaints(/403|ERR_/);
  test.control.advance(STALE_MS);
  await window.goTo(`/operator/organizations/${renter.organizationId}`);
  await page.getByRole('button', { name: 'Credit', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Amount in dollars').fill('3.5');
  await dialog.getByLabel('Reason').fill('an outage');
  await dialog.getByRole('button', { name: 'Credit', exact: true }).click();
  await prove(window, app);
  await page.waitForURL('**/operator/organizations/**');
  await dialog.getByRole('heading', { name: /^Credit .* with \$3\.50/ }).waitFor();
  expect(await dialog.getByLabel('Reason').inputValue()).toBe('an outage');
  await dialog.getByRole('button', { name: 'Credit', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await renter.api.get('/v1/orgs/current')).toMatchObject({ balance_micro: 3_500_000 });
  await page.reload();
  await page.getByRole('button', { name: 'Credit', exact: true }).waitFor();
  expect(await dialog.count()).toBe(0);
  await window.close();
});
