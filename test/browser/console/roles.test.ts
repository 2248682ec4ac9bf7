import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';

let test: TestConsole;
let owner: Renter;
let offer: string;
let template: string;
let id: string;

beforeAll(async () => {
  test = await TestConsole.start();
  owner = await test.control.renter();
  offer = await test.control.offer(await test.control.host({ gpus: 2 }));
  const made = await owner.api.post<{ id: string }>('/v1/templates', { name: 'Ours', image: 'ours:1', mode: ['ssh'] });
  template = made.id;
  await owner.api.post('/v1/api-keys', { name: 'CI' });
  const body = { offer_id: offer, template_id: template, disk_gb: 10, label: 'theirs' };
  ({ id } = await owner.api.post<InstanceBody>('/v1/instances', body));
  await statusIs(owner.api, id, 'running');
});
afterAll(() => test.stop());

/** Opens a window of somebody who has joined with a role; `refused` gathers the addresses that the control plane has refused. */
async function openAs(role: 'viewer' | 'billing'): Promise<{ window: ConsoleWindow; refused: string[] }> {
  const renter = await test.control.renter(0);
  const invite = { email: renter.email, role };
  const { token } = await owner.api.post<{ token: string }>('/v1/orgs/current/invites', invite);
  await renter.api.post(`/v1/invites/${token}/accept`);
  const window = await test.openFor(renter, owner.organizationId);
  const refused: string[] = [];
  window.page.on('response', (response) => {
    if (response.status() === 403) refused.push(new URL(response.url()).pathname);
  });
  return { window, refused };
}

/** Everything in the page that can be pressed, but for tabs, links in the text and tables that scroll. */
async function buttonsOf({ page }: ConsoleWindow, path: string): Promise<string[]> {
  await page.goto(path);
  await page.locator('main h1').waitFor();
  await page.locator('header button[aria-haspopup=menu]').waitFor();
  await eventually(`${path} to be read`, async () => (await page.locator('main [aria-label^=Loading]').count()) === 0);
  const shown = page.locator('main :is(button, a[class*=button]):not([aria-label=Connection] *):visible');
  return shown.allTextContents();
}

it('a viewer sees everything, and no button that changes it', async () => {
  const { window, refused } = await openAs('viewer');
  const found: Record<string, string[]> = {};
  for (const path of [
    '/market',
    `/deploy?offer=${offer}`,
    '/instances',
    `/instances/${id}`,
    `/instances/${id}?tab=settings`,
    '/templates',
    `/templates/${template}`,
    '/templates/new',
    `/templates/${template}/edit`,
    '/billing',
    '/keys',
    '/team',
    '/webhooks',
  ])
    found[path.replace(id, 'ID').replace(template, 'ID').replace(offer, 'ID')] = await buttonsOf(window, path);
  const reach = ['Copy', 'Open in VS Code'];
  expect(found).toEqual({
    // They filter.
    '/market': ['Fake GPU 1', 'Runs virtual machines'],
    '/deploy?offer=ID': ['See your role'],
    '/instances': ['Copy', 'Show destroyed instances'],
    '/instances/ID': reach,
    '/instances/ID?tab=settings': reach,
    '/templates': [],
    '/templates/ID': ['Copy'],
    '/templates/new': ['See your role'],
    '/templates/ID/edit': ['See your role'],
    '/billing': [],
    '/keys': ['Add an SSH key', 'Caps'],
    '/team': ['New organization', 'Copy', 'Leave'],
    '/webhooks': [],
  });
  expect(refused).toEqual([]);
  await window.page.goto(`/instances/${id}?tab=settings`);
  await window.page.getByLabel('At most, in $').waitFor();
  expect(await window.page.getByLabel('At most, in $').isDisabled()).toBe(true);
  await window.checkAccess();
  await window.shoot('viewer-settings');
  await window.close();
});

it('a member with the role billing is led to the money, and sees no page that only ends in a refusal', async () => {
  const { window, refused } = await openAs('billing');
  const { page } = window;
  window.expectComplaints(/403/);
  expect(await buttonsOf(window, '/billing')).toEqual(['Add money', 'Change the caps']);
  expect(await page.getByRole('navigation', { name: 'Pages' }).getByRole('listitem').allTextContents()).toEqual([
    'Billing',
    'Team',
    'Keys',
    'Account',
  ]);
  expect(refused).toEqual([]);
  await page.getByText('Your role is not told of changes as they happen').waitFor();
  expect(await buttonsOf(window, '/keys')).toEqual(['Add an SSH key']);
  expect(await buttonsOf(window, '/team')).toEqual(['New organization', 'Copy', 'Leave']);
  for (const path of ['/instances', `/instances/${id}`, '/market', '/templates']) {
    await page.goto(path);
    await page.getByText('Your role sees only money').waitFor();
    expect(await page.locator('main [role=alert]').count()).toBe(0);
  }
  await window.shoot('billing-role');
  await window.checkAccess();
  await page.getByRole('link', { name: 'Go to billing' }).click();
  await page.waitForURL('**/billing');
  await window.close();
});
