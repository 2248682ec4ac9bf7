import { afterAll, beforeAll, expect, it } from 'vitest';
import { CLIENT, setCompany } from '../../harness/companies.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import type { Renter } from '../../harness/control-plane.js';
import { addApp } from '../../harness/second-factors.js';

const PATH = '/operator/users/sign-ins';
const HOSTILE = '<img src=x onerror=alert(1)>';

let test: TestConsole;
let operator: Renter;
let window: ConsoleWindow;
beforeAll(async () => {
  test = await TestConsole.start();
  operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  window = await test.open(operator);
});
afterAll(async () => {
  await window.close();
  await test.stop();
});

interface Issuer {
  id: string;
  [field: string]: unknown;
}
const issuers = async () => (await test.control.operator.get<{ items: Issuer[] }>('/v1/operator/issuers')).items;

it('adds the sign-in of a company, with the organization that its people join, and shows its secret never again', async () => {
  const { page } = window;
  const renter = await test.control.renter(0);
  await renter.api.request('PATCH', '/v1/orgs/current', { name: 'Acme Staff' });
  await window.goTo('/operator/users');
  await page.getByRole('link', { name: 'Companies’ sign-ins' }).press('Enter');
  await page.getByRole('heading', { name: 'No company signs in' }).waitFor();
  await window.checkAccess();
  await page.locator('main').getByRole('link', { name: 'Add a company' }).last().press('Enter');
  await page.waitForURL(`**${PATH}/new`);
  await page.getByLabel('Word for the company').fill('acme');
  await page.getByLabel('Name', { exact: true }).fill(HOSTILE);
  await page.getByRole('textbox', { name: 'Issuer' }).fill('https://login.acme.example/realms/staff');
  await page.getByLabel('Client id').fill('gpurent');
  await page.getByLabel('Client secret').fill('a secret of the client');
  await page.getByLabel('names the company to everybody').check();
  expect(await page.getByLabel('Redirect address').innerText()).toBe(`${test.home}/sign-in/company/acme/return`);
  await page.getByLabel('Domain', { exact: true }).fill('Acme.Example');
  // Enter in this field looks for the organization, and sends no form.
  await page.getByRole('searchbox', { name: 'Organization that new accounts join' }).fill('acme st');
  await page.getByRole('searchbox', { name: 'Organization that new accounts join' }).press('Enter');
  await page.getByRole('link', { name: 'Acme Staff' }).waitFor();
  expect(await issuers()).toEqual([]);
  await page.getByLabel('As', { exact: true }).selectOption('viewer');
  await page.getByLabel('Accept addresses').check();
  await page.getByRole('button', { name: 'Add a domain' }).click();
  await window.checkAccess();
  await window.shoot('operator-sign-in-new');
  await page.getByRole('button', { name: 'Add the company' }).click();
  await page.waitForURL(`**${PATH}`);
  const table = page.getByRole('table', { name: 'Companies’ sign-ins' });
  await table.getByText('works, named to everybody').waitFor();
  expect(await issuers()).toMatchObject([
    {
      id: 'acme',
      name: HOSTILE,
      client_id: 'gpurent',
      listed: true,
      has_client_secret: true,
      domains: [
        {
          domain: 'acme.example',
          organization_id: renter.organizationId,
          role: 'viewer',
          passwords_off: false,
          accept_unverified: true,
        },
      ],
    },
  ]);
  await window.checkAccess();
  await window.shoot('operator-sign-ins');
  await table.getByRole('link', { name: HOSTILE }).press('Enter');
  await page.waitForURL(`**${PATH}/acme`);
  expect(await page.getByLabel('Client secret').inputValue()).toBe('');
  expect(await page.content()).not.toContain('a secret of the client');
});

it('does not let the word of one company take the place of another', async () => {
  const { page } = window;
  const before = await issuers();
  await window.goTo(`${PATH}/new`);
  await page.getByLabel('Word for the company').fill('acme');
  await page.getByLabel('Name', { exact: true }).fill('Mallory');
  await page.getByRole('textbox', { name: 'Issuer' }).fill('https://mallory.example');
  await page.getByLabel('Client id').fill('gpurent');
  await page.getByLabel('Client secret').fill('x');
  await page.getByRole('button', { name: 'Add the company' }).click();
  await page.getByText('“acme” is the word of another company').waitFor();
  expect(await issuers()).toEqual(before);
});

it('changes a company by its address: the secret stays unless another is given, and passwords can be off', async () => {
  const { page } = window;
  await window.goTo(`${PATH}/acme`);
  await page.getByLabel('Name', { exact: true }).fill('Acme Ltd');
  await page.getByLabel('Passwords are off for its users').check();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('table', { name: 'Companies’ sign-ins' }).getByText('acme.example (passwords off)').waitFor();
  expect(await issuers()).toMatchObject([
    { name: 'Acme Ltd', has_client_secret: true, domains: [{ domain: 'acme.example', passwords_off: true }] },
  ]);
  window.expectComplaints(/ of 409/);
  await setCompany(test.control, 'https://login.other.example', {
    id: 'other',
    domains: [{ domain: 'other.example' }],
  });
  await window.goTo(`${PATH}/acme`);
  await page.getByLabel('Domain', { exact: true }).fill('other.example');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('main form').getByRole('alert').waitFor();
  expect(await page.getByLabel('Domain', { exact: true }).inputValue()).toBe('other.example');
  await window.goTo(`${PATH}/nobody`);
  await page.getByRole('heading', { name: 'No company has this word' }).waitFor();
});

it('keeps what was typed, but for the secret, while the operator proves who they are', async () => {
  const { page } = window;
  await addApp(test.control, operator.api);
  test.control.clock.advance(16 * 60_000);
  window.expectComplaints(/403/, /ERR_INCOMPLETE_CHUNKED_ENCODING/);
  await window.goTo(`${PATH}/acme`);
  await page.getByLabel('Name', { exact: true }).fill('Acme Limited');
  await page.getByLabel('Client secret').fill('another secret');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('link', { name: 'Show that it is you, then do it again' }).click();
  await page.waitForURL('**/account/prove?*');
  const kept = await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage })');
  expect(kept).toContain('Acme Limited');
  expect(kept).not.toContain('another secret');
  await window.goTo(`${PATH}/acme`);
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Acme Limited');
  expect(await page.getByLabel('Client secret').inputValue()).toBe('');
  // Without it, the secret from before would stay.
  await page.getByText('Type it again: it is kept nowhere.').waitFor();
  expect(
    await page.evaluate('document.querySelector("[name=client_secret], [type=password]").validity.valueMissing'),
  ).toBe(true);
});

it('removes a company after it has said what follows', async () => {
  const other = await test.control.renter(0);
  test.control.makeOperator(other.userId);
  const fresh = await test.open(other);
  const { page } = fresh;
  await fresh.goTo(`${PATH}/other`);
  await page.getByRole('button', { name: 'Remove: Acme', exact: true }).press('Enter');
  const question = page.getByRole('alertdialog');
  await question.getByText('passwords count again for its domains').waitFor();
  await fresh.checkAccess();
  await question.getByRole('button', { name: 'Remove' }).click();
  await page.waitForURL(`**${PATH}`);
  const table = page.getByRole('table', { name: 'Companies’ sign-ins' });
  await table.getByText('acme.example (passwords off)').waitFor();
  expect(await table.getByText('other.example').count()).toBe(0);
  expect((await issuers()).map(({ id }) => id)).toEqual(['acme']);
  expect(JSON.stringify(await issuers())).not.toContain(CLIENT.client_secret);
  await fresh.close();
});
