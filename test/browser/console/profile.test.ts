import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import { TestConsole } from '../../harness/console.js';
import { addApp } from '../../harness/second-factors.js';

const HOSTILE = '<svg onload=alert(1)> & co';

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

async function signInAgain(email: string): Promise<string> {
  const body = { email, password: 'a renter password' };
  return (await test.control.api.post<{ token: string }>('/v1/auth/sign-in', body)).token;
}

it('shows who one is, and ends sessions', async () => {
  const renter = await test.control.renter();
  const [other, another] = [await signInAgain(renter.email), await signInAgain(renter.email)];
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/profile');
  const rows = page.getByRole('table', { name: 'Sessions' }).locator('tbody tr');
  await rows.nth(2).waitFor();
  expect(await rows.first().innerText()).toContain('this browser');
  await window.shoot('profile');
  await window.checkAccess();
  await rows.nth(1).getByRole('button').click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'End' }).click();
  await rows.nth(2).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'End all others' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'End all others' }).click();
  // What a dialog covers counts as gone already while it is asked.
  for (const token of [other, another])
    await expect.poll(async () => (await test.control.api.as(token).request('GET', '/v1/me')).status).toBe(401);
  await rows.nth(1).waitFor({ state: 'detached' });
  await window.close();
});

it('goes to the sign-in when its session is ended elsewhere, and back', async () => {
  const renter = await test.control.renter();
  const elsewhere = test.control.api.as(await signInAgain(renter.email));
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/profile');
  window.expectComplaints(/401/);
  await elsewhere.request('DELETE', '/v1/auth/sessions');
  await page.getByLabel('A balance lasts less').click();
  await window.reachSignIn('/profile');
  await page.fill('#email', renter.email);
  await page.fill('#password', 'a renter password');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/profile');
  await page.getByRole('table', { name: 'Sessions' }).waitFor();
  await window.close();
});

it('lists second factors, asks for a proof before it removes one, and keeps the choice of mails', async () => {
  const renter = await test.control.renter();
  await addApp(test.control, renter.api, HOSTILE);
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/profile');
  await page.getByText('10 recovery codes are left').waitFor();
  await page.getByLabel('A cap is used up').uncheck();
  await eventually('the choice', async () => !(await renter.api.get<{ caps: boolean }>('/v1/me/mail')).caps);
  // The event stream is cut by it, too.
  test.control.advance(16 * 60_000);
  window.expectComplaints(/403/, /ERR_INCOMPLETE_CHUNKED_ENCODING/);
  await page.getByRole('button', { name: 'Remove' }).click();
  const asked = page.getByRole('alertdialog');
  await asked.getByText(`Remove the authenticator app ${HOSTILE} and all recovery codes`).waitFor();
  await asked.getByRole('button', { name: 'Remove' }).click();
  await asked.getByRole('link', { name: 'Show that it is you' }).waitFor();
  await window.shoot('profile-remove');
  await window.checkAccess();
  await asked.getByRole('link', { name: 'Show that it is you' }).click();
  await page.waitForURL('**/account/prove?return_to=%2Fprofile');
  await window.close();
});
