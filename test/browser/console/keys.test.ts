import { afterAll, beforeAll, expect, it } from 'vitest';
import type { components } from '../../../client/api/index.js';
import { TestConsole } from '../../harness/console.js';

type ApiKey = components['schemas']['ApiKey'];
type SpendCaps = components['schemas']['SpendCaps'];

const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti <b>me</b>@example.com';

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('adds an SSH key by the keyboard, refuses a private one unsent, and removes it after a question', async () => {
  const renter = await test.control.renter();
  const window = await test.open(renter, { width: 360, height: 740 });
  const { page } = window;
  await window.goTo('/keys');
  await window.shoot('keys-empty');
  await page.getByRole('link', { name: 'Add an SSH key' }).press('Enter');
  await page.waitForURL('**/keys?add=ssh');
  await page.getByLabel('Public key').fill('-----BEGIN OPENSSH PRIVATE KEY-----');
  await page.waitForSelector('text=This is a private key');
  await page.getByLabel('Public key').fill(PUBLIC_KEY);
  await window.checkAccess();
  await page.getByLabel('Name', { exact: true }).press('Enter');
  await page.waitForSelector('th:has-text("<b>me</b>@example.com")');
  await page.waitForURL('**/keys');
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await page.getByRole('button', { name: 'Remove: ' }).press('Enter');
  await page.waitForSelector('text=Instances that have it keep it');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).press('Enter');
  await page.waitForSelector('text=You have no SSH key');
  await window.close();
});

it('shows the secret of an API key once, with the restrictions that were asked for', async () => {
  const renter = await test.control.renter();
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/keys?add=api');
  await page.getByLabel('Name', { exact: true }).fill('CI <script>');
  await page.getByLabel('it may only read').press('Space');
  await page.getByLabel('Addresses from which it works').fill('127.0.0.0/8\n2001:db8::/32');
  await page.getByLabel('It ends').selectOption('7');
  await page.getByLabel('Spent on this day (UTC), at most').fill('12.345678');
  await window.shoot('keys-create');
  await window.checkAccess();
  await page.getByRole('button', { name: 'Create the key' }).press('Enter');
  const secret = (await page.getByLabel('The secret of CI <script>').textContent()) ?? '';
  expect(secret).toMatch(/^svc_[0-9a-f]{48}$/);
  const { items } = await renter.api.as(secret).get<{ items: ApiKey[] }>('/v1/api-keys');
  const [key] = items;
  expect(key).toMatchObject({ read_only: true, allowed_addresses: ['127.0.0.0/8', '2001:db8::/32'] });
  expect(Date.parse(key?.expires_at ?? '') - test.control.clock.now()).toBeGreaterThan(6.9 * 86_400_000);
  const caps = await renter.api.get<SpendCaps>(`/v1/api-keys/${key?.id}/spend-caps`);
  expect(caps.day_micro).toBe(12_345_678);
  await window.shoot('keys-secret');
  await window.checkAccess();
  expect(await window.keepSecret('The secret of CI <script>')).toBe(secret);
  expect(await page.content()).not.toContain(secret);
  await page.reload();
  await page.waitForSelector('th:has-text("CI <script>")');
  expect(await page.content()).not.toContain(secret);
  await page.getByRole('cell', { name: 'at most $12.345678 a day' }).waitFor();
  await page.getByRole('link', { name: 'Caps: CI' }).press('Enter');
  await page.waitForSelector('text=$0.00 of $12.345678, 0 % used');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Revoke: CI' }).press('Enter');
  await page.waitForSelector('text=is refused from its next request on');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).press('Enter');
  await page.waitForSelector('text=There are no API keys');
  await expect(renter.api.as(secret).get('/v1/api-keys')).rejects.toThrow();
  await window.close();
});
