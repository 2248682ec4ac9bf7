import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';

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
  await page.waitForURL('**/keys');
  await renter.api.post('/v1/ssh-keys', { name: 'laptop', public_key: sshKey() });
  await window.goTo('/instances');
  await next.getByRole('link', { name: 'Add money' }).waitFor();
  const credit = { amount_micro: 1_234_567, reason: 'a start' };
  await test.control.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, credit);
  await next.getByRole('link', { name: 'See what is free' }).waitFor();
  expect(await page.getByText('Your balance is $1.234567').count()).toBe(1);
  await window.shoot('first-minutes-machine');
  await next.getByRole('link').click();
  await page.waitForURL('**/market');
  await window.close();
});

function sshKey(): string {
  const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const [name, key] = [Buffer.from('ssh-ed25519'), Buffer.from(x ?? '', 'base64url')];
  const part = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  return `ssh-ed25519 ${Buffer.concat([part(name), part(key)]).toString('base64')}`;
}
