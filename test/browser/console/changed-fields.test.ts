import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import { WebhookReceiver } from '../../harness/webhook-receiver.js';

/** When clocks in Berlin show 02:30 for the second time in that night. */
const SECOND_HALF_PAST_TWO = '2027-10-31T01:30:00.000Z';

let receiver: WebhookReceiver;
let test: TestConsole;
let renter: Renter;
let offer_id: string;
let template_id: string;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  test = await TestConsole.start({ webhooks: receiver.reachable });
  renter = await test.control.renter();
  offer_id = await test.control.offer(await test.control.host());
  template_id = await test.control.template({ name: 'System' });
});
afterAll(async () => {
  await test.stop();
  await receiver.stop();
});

async function openAsOperator(): Promise<ConsoleWindow> {
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  return test.open(operator);
}

it('settings of an instance: leaves a limit that a colleague has set, and a time that two moments have', async () => {
  const fields = { offer_id, template_id, disk_gb: 10, label: 'mine', stop_at: SECOND_HALF_PAST_TWO };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', fields);
  await statusIs(renter.api, id, 'running');
  const window = await test.open(renter, { timezoneId: 'Europe/Berlin' });
  const { page } = window;
  const save = page.getByRole('button', { name: 'Save the label and the limits' });
  await window.goTo(`/instances/${id}?tab=settings`);
  expect(await page.getByLabel('Stop at').inputValue()).toBe('2027-10-31T02:30');
  await page.getByLabel('Label', { exact: true }).fill('renamed');
  await renter.api.request('PATCH', `/v1/instances/${id}`, { max_charge_micro: 5_000_000 });
  await save.click();
  await page.getByRole('heading', { name: 'renamed' }).waitFor();
  // What was not touched is shown as it is now.
  await eventually('the limit', async () => (await page.getByLabel('At most, in $').inputValue()).startsWith('5'));
  await page.getByLabel('After idle minutes').fill('30');
  await save.click();
  await eventually('the answer', async () => {
    const { idle_stop_minutes } = await renter.api.get<InstanceBody>(`/v1/instances/${id}`);
    return idle_stop_minutes === 30;
  });
  expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({
    label: 'renamed',
    max_charge_micro: 5e6,
    stop_at: SECOND_HALF_PAST_TWO,
  });
  await window.close();
});

it('schedule of an instance: leaves the time zone of a colleague, keeps what was typed, and says that they have saved', async () => {
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10 });
  await statusIs(renter.api, id, 'running');
  const path = `/v1/instances/${id}/schedule`;
  const schedule = (time_zone: string, at: string) => ({
    time_zone,
    entries: [
      {
        action: 'stop',
        days: ['monday'],
        at,
      },
    ],
  });
  await renter.api.put(path, schedule('Europe/Berlin', '08:00'));
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo(`/instances/${id}?tab=settings`);
  const at = page.getByLabel('At', { exact: true });
  await at.fill('07:30');
  await renter.api.put(path, schedule('UTC', '08:00'));
  await page.getByRole('button', { name: 'Save the schedule' }).click();
  await page.getByText('The schedule is saved').waitFor();
  expect(await renter.api.get(path)).toMatchObject(schedule('UTC', '07:30'));
  await at.fill('09:15');
  await renter.api.put(path, schedule('UTC', '10:00'));
  // No event tells of a schedule: this one has everything of the instance read again.
  await renter.api.post(`/v1/instances/${id}/stop`);
  await page.getByText('Somebody has changed the schedule meanwhile').waitFor();
  expect(await at.inputValue()).toBe('09:15');
  await window.checkAccess();
  await page.getByRole('button', { name: 'Show theirs' }).click();
  await page.getByText('Somebody has changed the schedule meanwhile').waitFor({ state: 'detached' });
  expect(await at.inputValue()).toBe('10:00');
  await window.close();
});

it('caps: keeps one that a colleague has set meanwhile', async () => {
  const path = '/v1/orgs/current/spend-caps';
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/billing');
  await page.getByRole('button', { name: 'Change the caps' }).click();
  const day = page.getByLabel('Spent on this day (UTC), at most');
  await day.fill('900');
  const theirs = { burn_per_hour_micro: null, day_micro: null, month_micro: 999_000_000 };
  await renter.api.request('PUT', path, theirs);
  await page.getByRole('button', { name: 'Set the caps' }).click();
  await day.waitFor({ state: 'detached' });
  expect(await renter.api.get(path)).toMatchObject({ ...theirs, day_micro: 900_000_000 });
  await window.close();
});

it('a template and a webhook endpoint: leave what a colleague has changed meanwhile', async () => {
  const body = {
    name: 'Own',
    image: 'registry.example.com/own:1',
    mode: ['ssh'],
    ssh_user: 'root',
    visibility: 'organization',
  };
  const own = await renter.api.post<{ id: string }>('/v1/templates', {
    ...body,
    description: 'ours',
    kind: 'container',
  });
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo(`/templates/${own.id}/edit`);
  await page.getByLabel('Name', { exact: true }).fill('Renamed');
  await renter.api.request('PATCH', `/v1/templates/${own.id}`, { image: 'registry.example.com/own:2' });
  await page.getByRole('button', { name: 'Save the template' }).click();
  await page.waitForURL(`**/templates/${own.id}`);
  expect(await renter.api.get(`/v1/templates/${own.id}`)).toMatchObject({
    name: 'Renamed',
    image: 'registry.example.com/own:2',
  });
  const given = { url: receiver.url(), description: null, types: ['member.joined'], instance_id: null };
  const { endpoint } = await renter.api.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', given);
  await window.goTo(`/webhooks/${endpoint.id}`);
  await page.getByRole('link', { name: 'Change' }).click();
  const purpose = page.getByRole('dialog').getByLabel('What it is for');
  await purpose.fill('for the team');
  await renter.api.request('PATCH', `/v1/webhook-endpoints/${endpoint.id}`, { types: null });
  await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
  await purpose.waitFor({ state: 'detached' });
  expect(await renter.api.get(`/v1/webhook-endpoints/${endpoint.id}`)).toMatchObject({
    description: 'for the team',
    types: null,
  });
  await window.close();
});

it('a system template and the terms of an offer: leave what a colleague has changed meanwhile', async () => {
  const window = await openAsOperator();
  const { page } = window;
  await window.goTo(`/operator/templates/${template_id}`);
  await page.getByLabel('Name', { exact: true }).fill('Renamed');
  const template = `/v1/operator/templates/${template_id}`;
  await test.control.operator.request('PATCH', template, { image: 'registry.example.com/theirs:2' });
  await page.getByRole('button', { name: 'Save the template' }).click();
  await page.waitForURL('**/operator/templates');
  expect(await test.control.operator.get(template)).toMatchObject({
    name: 'Renamed',
    image: 'registry.example.com/theirs:2',
  });
  await window.goTo('/operator/offers');
  await page.getByRole('button', { name: /^Reprice: / }).click();
  const price = page.getByRole('dialog').getByLabel('Price in dollars per hour');
  await price.fill('1.5');
  const theirs = { storage_price_per_gb_hour_micro: 321 };
  await test.control.operator.request('PATCH', `/v1/operator/offers/${offer_id}`, theirs);
  await page.getByRole('dialog').getByRole('button', { name: 'Reprice' }).click();
  await price.waitFor({ state: 'detached' });
  expect(await test.control.operator.get(`/v1/offers/${offer_id}`)).toMatchObject({
    ...theirs,
    price_per_hour_micro: 15e5,
  });
  await window.close();
});
