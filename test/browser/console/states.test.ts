import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';

let test: TestConsole;
let agent: FakeAgent;
let offer_id: string;
let template_id: string;
let id: string;
let renter: Renter;

beforeAll(async () => {
  test = await TestConsole.start();
  agent = await test.control.host({ gpus: 32 });
  offer_id = await test.control.offer(agent, 1, 10_000);
  template_id = await test.control.template({ name: 'vLLM', mode: ['ssh'] });
  renter = await test.control.renter();
  id = await deploy(1);
});
afterAll(() => test.stop());

async function deploy(number: number): Promise<string> {
  const body = { offer_id, template_id, disk_gb: 10, label: `a-label-as-long-as-they-are ${number}` };
  return (await renter.api.post<InstanceBody>('/v1/instances', body)).id;
}

/** Every page for renters, with the text of a heading or table that is there once it has read everything. */
const pages = () => [
  ['/market', 'Market'],
  [`/deploy?offer=${offer_id}&template=${template_id}`, 'Summary'],
  ['/instances', 'Instances'],
  ['/templates', 'Templates'],
  [`/templates/${template_id}`, 'vLLM'],
  ['/templates/new', 'New template'],
  ['/billing', 'Caps of the organization'],
  ['/billing?tab=spend', 'Billing'],
  ['/billing?tab=transactions', 'Billing'],
  ['/keys', 'API keys of the organization'],
  ['/team', 'Invitations'],
  ['/team/audit', 'Team'],
  ['/webhooks', 'Webhooks'],
  ['/profile', 'Where you are signed in'],
];

/** Nothing is still being read, nothing has failed, and nothing is wider than a phone. */
async function isWhole({ page }: ConsoleWindow, path: string): Promise<void> {
  await eventually(`${path} to be read`, async () => (await page.locator('main [aria-label^=Loading]').count()) === 0);
  expect(await page.locator('main [role=alert]').allTextContents(), path).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(360);
}

async function visitAll(who: Renter, extra: string[][] = []): Promise<void> {
  const window = await test.open(who, { width: 360 });
  for (const [path = '', heading = ''] of [...pages(), ...extra]) {
    await window.page.goto(path);
    await window.page.getByRole('heading', { name: heading }).first().waitFor();
    await isWhole(window, path);
  }
  await window.close();
}

it('has every page for a renter who has nothing', async () => {
  await visitAll(await test.control.renter(0));
});

it('has every page with one instance, then with 25', async () => {
  await statusIs(renter.api, id, 'running');
  test.control.advance(60_000);
  await agent.speak(id);
  test.control.advance(0);
  const ofInstance = ['timeline', 'logs', 'usage', 'cost', 'settings'].map((tab) => [
    `/instances/${id}?tab=${tab}`,
    'a-label',
  ]);
  await visitAll(renter, ofInstance);
  for (let number = 2; number <= 25; number++) await deploy(number);
  const window = await test.open(renter, { width: 360 });
  for (const [path, text] of [
    ['/instances', 'a-label-as-long-as-they-are 25'],
    ['/billing?tab=spend&by=label', 'a-label-as-long-as-they-are 1'],
  ] as const) {
    await window.page.goto(path);
    await window.page.getByText(text).first().waitFor();
    await isWhole(window, path);
  }
  await window.close();
});

const FAILURES = [
  { status: 500, code: 'INTERNAL', message: 'something went wrong' },
  // It is sent again, at once.
  { status: 503, code: 'UNAVAILABLE', message: 'the control plane is starting', headers: { 'Retry-After': '0' } },
];

it('says on every page what has failed and the id of the request, keeps its layout, and goes on when it works again', async () => {
  const window = await test.open(renter, { width: 360 });
  const { page } = window;
  window.expectComplaints(/500|503/);
  const reads = /\/v1\/(?!me$|events)/;
  const paths = pages()
    .map(([path = '']) => path)
    .filter((path) => path !== '/templates/new');
  for (const [index, path] of [...paths, `/instances/${id}`].entries()) {
    const { status, headers = {}, ...failure } = FAILURES[index % FAILURES.length] ?? { status: 500 };
    const body = JSON.stringify({ ...failure, request_id: `request-${index}` });
    await page.route(reads, (route) => route.fulfill({ status, headers, contentType: 'application/json', body }));
    await page.goto(path);
    await page.locator('main h1').waitFor();
    const alert = page.locator('main [role=alert]').first();
    await alert.getByText(`request-${index}`).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(360);
    await page.unroute(reads);
    await eventually(`${path} to go on`, async () => {
      const again = page.locator('main').getByRole('button', { name: 'Try again' }).first();
      if ((await again.count()) > 0) await again.click({ timeout: 1_000 }).catch(() => undefined);
      return (await page.locator('main [role=alert]').count()) === 0;
    });
  }
  await window.close();
});

it('says when the browser is offline, loses nothing, and reads everything again once it is back', async () => {
  const window = await test.open(renter);
  const { page, context } = window;
  window.expectComplaints(/ERR_INTERNET_DISCONNECTED|ERR_ABORTED|Failed to load resource/);
  await window.goTo(`/instances/${id}?tab=settings`);
  await page.getByLabel('At most, in $').fill('12.5');
  await context.setOffline(true);
  await page.getByText('Your browser is offline since').waitFor();
  await window.shoot('offline');
  await window.checkAccess();
  // What happens meanwhile is seen afterwards without a click; what was read and typed before is still there.
  await renter.api.request('PATCH', '/v1/orgs/current', { name: 'Renamed meanwhile' });
  await renter.api.request('PATCH', `/v1/instances/${id}`, { label: 'renamed-meanwhile' });
  await page.getByRole('heading', { name: 'a-label-as-long-as-they-are 1' }).waitFor();
  await page.getByRole('button', { name: 'Save the label and the limits' }).click();
  await page.locator('main [role=alert]').getByText('was not reached').waitFor();
  await context.setOffline(false);
  await page.getByText('Your browser is offline since').waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'renamed-meanwhile' }).waitFor();
  await page.locator('header').getByText('Renamed meanwhile').waitFor();
  expect(await page.getByLabel('At most, in $').inputValue()).toBe('12.5');
  await window.close();
});
