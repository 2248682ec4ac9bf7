import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import { verify, WebhookReceiver } from '../../harness/webhook-receiver.js';

const HOSTILE = '</pre><script>alert(1)</script><b>bold</b>';

let receiver: WebhookReceiver;
let test: TestConsole;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  test = await TestConsole.start({ webhooks: receiver.reachable });
});
afterAll(async () => {
  await test.stop();
  await receiver.stop();
});

it('leads an endpoint from its creation over its deliveries to its end', async () => {
  const renter = await test.control.renter();
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/webhooks');
  await window.shoot('webhooks-empty');
  await window.checkAccess();
  await page.getByRole('link', { name: 'Add an endpoint' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Address').fill(receiver.url());
  await dialog.getByLabel('What it is for').fill(HOSTILE);
  await dialog.getByLabel('All, also those').uncheck();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await dialog.getByText('Choose at least one type').waitFor();
  await dialog.getByLabel('member.joined').check();
  await window.shoot('webhooks-new');
  await window.checkAccess();
  await dialog.getByRole('button', { name: 'Create' }).click();
  const secret = await window.keepSecret('Secret');
  await page.getByRole('table', { name: 'Endpoints' }).getByText(HOSTILE).waitFor();
  await window.shoot('webhooks');

  await page.getByRole('link', { name: receiver.url() }).click();
  receiver.answer = (response) => void response.writeHead(500).end(HOSTILE);
  await page.getByRole('button', { name: 'Send a test' }).click();
  const rows = page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr');
  await rows.filter({ hasText: 'failed' }).waitFor();
  await rows.first().getByText('What it said').click();
  await rows.first().getByText(HOSTILE).waitFor();
  await window.shoot('webhook');
  await window.checkAccess();
  receiver.answer = (response) => void response.writeHead(204).end();
  await page.getByRole('button', { name: 'Replay: webhook.test' }).click();
  await rows.filter({ hasText: 'delivered' }).waitFor();
  const [message] = receiver.received;
  if (message) verify(message, secret, test.control.clock.now());
  await page.getByRole('link', { name: 'failed' }).click();
  await page.waitForURL('**?state=failed');
  await page.waitForSelector('text=None here');

  await page.getByRole('button', { name: 'New secret' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'New secret' }).click();
  const another = await window.keepSecret('Secret');
  expect(another).toMatch(/^whsec_/);
  expect(another).not.toBe(secret);
  await page.getByText('signs, too, until').waitFor();

  await page.getByRole('button', { name: 'Replay since…' }).click();
  await page.getByLabel('Since', { exact: true }).fill('2020-01-01T00:00');
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.getByText('events are compared with its filters').waitFor();

  await page.getByRole('button', { name: 'Switch off' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Switch off' }).click();
  await page.getByText('switched off by a person').waitFor();
  expect(await page.getByRole('button', { name: 'Send a test' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Switch on' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No program is told').waitFor();
  await window.close();
});

it('shows the secret of an endpoint also if the dialog was closed before it was made', async () => {
  const window = await test.open(await test.control.renter(0));
  const { page } = window;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/v1/webhook-endpoints', async (route) => {
    if (route.request().method() === 'POST') await released;
    return route.continue();
  });
  await window.goTo('/webhooks?add=true');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Address').fill(receiver.url());
  await dialog.getByRole('button', { name: 'Create' }).click();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  release();
  expect(await window.keepSecret('Secret')).toMatch(/^whsec_/);
  await page.getByRole('table', { name: 'Endpoints' }).getByText(receiver.url()).waitFor();
  await window.close();
});

it('keeps what was typed when it is refused', async () => {
  const window = await test.open(await test.control.renter(0));
  const { page } = window;
  window.expectComplaints(/422/);
  await window.goTo('/webhooks');
  await page.getByRole('link', { name: 'New endpoint' }).click();
  await page.getByLabel('Address').fill('http://plain.example/hooks');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  expect(await page.getByLabel('Address').inputValue()).toBe('http://plain.example/hooks');
  await window.close();
});
