import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordNote } from '../../../control-plane/services/events/timeline.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { isNight } from '../../harness/at-night.js';
import { TestConsole } from '../../harness/console.js';
import {
  declaredRoutes,
  furtherPerRoute,
  onePerRoute,
  rentersPages,
  testedRoutes,
  type PageIds,
} from '../../harness/console-pages.js';
import {
  isWhole,
  loadAll,
  PHONE,
  visitAll,
  visitAnew,
  visitOffline,
  visitWhileFailing,
} from '../../harness/console-visits.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';
import { makePublicKey } from '../../harness/keys.js';

let test: TestConsole;
let agent: FakeAgent;
let offer: string;
let template: string;
let id: string;
let renter: Renter;
let ids: PageIds;

beforeAll(async () => {
  test = await TestConsole.start();
  agent = await test.control.host({ gpus: 64 });
  offer = await test.control.offer(agent, 1, 10_000);
  template = await test.control.template({ name: 'vLLM', mode: ['ssh'] });
  renter = await test.control.renter();
  ({ id } = await deploy(1));
  const made = [await makeTemplate(1), await makeEndpoint(1)] as const;
  ids = { offer, template, instance: id, ownTemplate: made[0].id, webhook: made[1].endpoint.id };
  await statusIs(renter.api, id, 'running');
  test.control.advance(60_000);
  await agent.speak(id);
  test.control.advance(0);
});
afterAll(() => test.stop());

const make = <T = { id: string }>(path: string, body: object) => renter.api.post<T>(path, body);
const deploy = (number: number) =>
  make<InstanceBody>('/v1/instances', {
    offer_id: offer,
    template_id: template,
    disk_gb: 10,
    label: `a-label-as-long-as-they-are ${number}`,
  });
const makeTemplate = (number: number) =>
  make('/v1/templates', { name: `template ${number}`, image: `image:${number}`, visibility: publicUpTo(20, number) });
const publicUpTo = (most: number, number: number) => (number <= most ? 'public' : 'organization');
const makeEndpoint = (number: number) =>
  make<{ endpoint: { id: string } }>('/v1/webhook-endpoints', { url: `https://hooks.example/${number}` });

/** As much of everything as can be, up to 25. */
async function makeMore(): Promise<void> {
  const { control } = test;
  const credit = `/v1/operator/organizations/${renter.organizationId}/credits`;
  for (let number = 2; number <= 25; number++) {
    await deploy(number);
    await control.offer(agent, 1, 10_000 + number);
    await makeTemplate(number);
    await make('/v1/api-keys', { name: `key ${number}` });
    await make('/v1/ssh-keys', { name: `ssh ${number}`, public_key: makePublicKey('-t', 'ed25519') });
    await make('/v1/orgs/current/invites', { email: `invited-${number}@example.com`, role: 'member' });
    await control.operator.post(credit, { amount_micro: number, reason: `credit ${number}` });
    if (number <= 10) await makeEndpoint(number);
  }
  control.core.platform.store.transact((tx) => {
    for (let number = 2; number <= 25; number++) recordNote(tx, id, 'note', `note ${number}`);
  });
}

it('tests every page that there is', () => {
  expect(testedRoutes()).toEqual(declaredRoutes());
});

it('has every page for a renter who has nothing', async () => {
  const window = await test.open(await test.control.renter(0), { width: PHONE });
  await visitAll(window, rentersPages({ offer, template }));
  await window.close();
});

// With one row in each list, pages are those with 25.
if (isNight)
  it('has every page with one of everything', async () => {
    const window = await test.open(renter, { width: PHONE });
    await visitAll(window, rentersPages(ids));
    await window.close();
  });

describe('with 25 of everything', () => {
  beforeAll(makeMore);

  it('has every tab, to the end of each list', async () => {
    const window = await test.open(renter, { width: PHONE });
    // By day the test without a network visits the first address of each route.
    if (isNight) await loadAll(window, rentersPages(ids));
    else await visitAnew(window, furtherPerRoute(rentersPages(ids)));
    for (const [path, text] of LAST) {
      await window.forget();
      await window.moveTo(path.replace('ID', id));
      await window.page.locator('main').getByText(text).first().waitFor();
      await isWhole(window, path);
    }
    await window.close();
  });

  it('says on every page what has failed and the id of the request, keeps its layout, and goes on when it works again', async () => {
    const window = await test.open(renter, { width: PHONE });
    await visitWhileFailing(window, rentersPages(ids), /\/v1\/(?!me$|events)/);
    await window.close();
  });

  it('has every page whole, says on it when the browser is offline, keeps what it shows, and goes on once it is back', async () => {
    const window = await test.open(renter, { width: PHONE });
    await visitOffline(window, onePerRoute(rentersPages(ids)));
    await window.close();
  });
});

/** What is at the end of a list of 25. */
const LAST = [
  ['/market', '25 offers'],
  ['/instances', 'a-label-as-long-as-they-are 25'],
  ['/instances/ID?tab=timeline', 'note 2'],
  ['/templates', 'template 25'],
  ['/billing?tab=transactions', 'credit 2'],
  ['/keys', 'ssh 25'],
  ['/team', 'invited-25@example.com'],
  ['/webhooks', 'https://hooks.example/10'],
] as const;

it('says when the browser is offline, loses nothing, and reads everything again once it is back', async () => {
  const other = await test.control.renter();
  const body = { offer_id: offer, template_id: template, disk_gb: 10, label: 'named-before' };
  const { id: its } = await other.api.post<InstanceBody>('/v1/instances', body);
  const window = await test.open(other);
  const { page, context } = window;
  window.expectComplaints(/ERR_INTERNET_DISCONNECTED|ERR_ABORTED|Failed to load resource/);
  await window.goTo(`/instances/${its}?tab=settings`);
  await page.getByLabel('At most, in $').fill('12.5');
  await context.setOffline(true);
  await page.getByText('Your browser is offline since').waitFor();
  await window.shoot('offline');
  await window.checkAccess();
  // What happens meanwhile is seen afterwards without a click; what was read and typed before is still there.
  await other.api.request('PATCH', '/v1/orgs/current', { name: 'Renamed meanwhile' });
  await other.api.request('PATCH', `/v1/instances/${its}`, { label: 'renamed-meanwhile' });
  await page.getByRole('heading', { name: 'named-before' }).waitFor();
  await page.getByRole('button', { name: 'Save the label and the limits' }).click();
  await page.locator('main [role=alert]').getByText('was not reached').waitFor();
  await context.setOffline(false);
  await page.getByText('Your browser is offline since').waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'renamed-meanwhile' }).waitFor();
  await page.locator('header').getByText('Renamed meanwhile').waitFor();
  expect(await page.getByLabel('At most, in $').inputValue()).toBe('12.5');
  await window.close();
});
