import { afterAll, beforeAll, expect, it } from 'vitest';
import { readFile } from 'node:fs/promises';
import { eventually } from '../../../scripts/eventually.js';
import type { Renter } from '../../harness/control-plane.js';
import { TestConsole } from '../../harness/console.js';

const HOSTILE = `<img src=x onerror=alert(1)> "quoted" ${'W'.repeat(20)}`;

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

/** Makes a renter a member of another one's organization. */
async function join(member: Renter, { api }: Renter, role = 'member'): Promise<void> {
  const { token } = await api.post<{ token: string }>('/v1/orgs/current/invites', { email: member.email, role });
  await member.api.post(`/v1/invites/${token}/accept`);
}

const idOf = async ({ api }: Renter) => (await api.get<{ user: { id: string } }>('/v1/me')).user.id;

it('invites, shows at once who has joined, and withdraws', async () => {
  const admin = await test.control.renter();
  const window = await test.open(admin);
  const { page } = window;
  await window.goTo('/team');
  const guest = await test.control.renter();
  await page.click('text=Invite somebody');
  await page.getByLabel('E-mail address').fill(guest.email);
  await page.getByLabel('Role', { exact: true }).selectOption('viewer');
  await window.checkAccess();
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const link = await window.keepSecret('Link of the invitation');
  expect(new URL(link).pathname).toBe('/accept-invite');
  await page.getByRole('table', { name: 'Invitations' }).getByText(guest.email).waitFor();
  await guest.api.post(`/v1/invites/${new URL(link).searchParams.get('token')}/accept`);
  await page.getByRole('table', { name: 'Members' }).getByText(guest.email).waitFor();
  await page.waitForSelector('text=Nobody is invited at present');
  await admin.api.post('/v1/orgs/current/invites', { email: 'else@example.com' });
  await page.getByLabel('Withdraw: else@example.com').click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Withdraw' }).click();
  await page.waitForSelector('text=Nobody is invited at present');
  await window.close();
});

it('shows the link of an invitation also if the dialog was closed before it was made', async () => {
  const window = await test.open(await test.control.renter());
  const { page } = window;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/v1/orgs/current/invites', async (route) => {
    if (route.request().method() === 'POST') await released;
    return route.continue();
  });
  await window.goTo('/team?invite=true');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('E-mail address').fill('late@example.com');
  await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  release();
  expect(new URL(await window.keepSecret('Link of the invitation')).pathname).toBe('/accept-invite');
  await window.close();
});

it('names what a demotion and a removal take away, and two admins see each other at work', async () => {
  const [one, two] = [await test.control.renter(), await test.control.renter()];
  await join(two, one, 'admin');
  const third = await test.control.renter();
  await join(third, one);
  await one.api.request('PATCH', '/v1/orgs/current', { name: HOSTILE });
  const [first, second] = [await test.openFor(one, one.organizationId), await test.openFor(two, one.organizationId)];
  await Promise.all([first.goTo('/team'), second.goTo('/team')]);
  await first.shoot('team');
  await first.page.getByLabel(`Change role: ${third.email}`).click();
  const dialog = first.page.getByRole('dialog');
  await dialog.getByLabel('Role', { exact: true }).selectOption('billing');
  await dialog.getByText('revokes their personal API keys').waitFor();
  await dialog.getByRole('button', { name: 'Change role' }).click();
  await second.page.getByRole('row').filter({ hasText: third.email }).getByText('billing', { exact: true }).waitFor();
  await second.page.getByLabel(`Remove: ${one.email}`).click();
  const asked = second.page.getByRole('alertdialog');
  await asked.getByText(`Remove ${one.email} from ${HOSTILE} and revoke their personal API keys`).waitFor();
  await second.shoot('team-remove');
  await second.checkAccess();
  await asked.getByRole('button', { name: 'Remove' }).click();
  await second.page.waitForSelector(`text=${one.email}`, { state: 'detached' });
  // The removed one has no other.
  first.expectComplaints(/403|404|ERR_/);
  await first.page.getByRole('heading', { name: 'You belong to no organization' }).waitFor();
  await first.close();
  await second.close();
});

it('says to others what they may, renames, makes another organization, and leaves', async () => {
  const [owner, viewer] = [await test.control.renter(), await test.control.renter()];
  await join(viewer, owner, 'viewer');
  const window = await test.openFor(viewer, owner.organizationId);
  const { page } = window;
  await window.goTo('/team');
  await page.waitForSelector('text=a viewer only reads');
  expect(await page.getByLabel('Id of the organization').textContent()).toBe(owner.organizationId);
  expect(await page.getByRole('table').count()).toBe(0);
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Leave' }).click();
  await page.waitForURL('**/instances');
  await window.goTo('/team');
  await page.getByRole('button', { name: 'New organization' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Second');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('header').getByRole('button', { name: 'Second' }).waitFor();
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('Name', { exact: true }).fill(HOSTILE);
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await page.getByText(HOSTILE).first().waitFor();
  window.expectComplaints(/403/);
  await page.getByRole('button', { name: 'Demand one' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Demand one' }).click();
  await page.getByRole('link', { name: 'Add a second factor' }).waitFor();
  await window.close();
});

it('shows what was done, by pages and filters of its address, and as a file', async () => {
  const admin = await test.control.renter();
  for (let count = 0; count < 60; count++)
    await admin.api.request('PATCH', '/v1/orgs/current', { name: count === 59 ? HOSTILE : `name ${count}` });
  const window = await test.open(admin);
  const { page } = window;
  await window.goTo('/team/audit');
  const rows = page.getByRole('table', { name: 'What was done' }).locator('tbody tr');
  await rows.first().waitFor();
  expect(await rows.count()).toBe(50);
  await page.getByRole('button', { name: 'Show older ones' }).click();
  await rows.nth(60).waitFor();
  await window.shoot('audit');
  await window.checkAccess();
  await page.getByLabel('Action').selectOption('organization.create');
  await page.waitForURL('**/team/audit?action=organization.create');
  await eventually('one row', async () => (await rows.count()) === 1);
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByText('Save as CSV').click()]);
  const file = await readFile(await saved.path(), 'utf8');
  expect(file.trim().split('\n')).toHaveLength(2);
  await page.goBack();
  await rows.nth(49).waitFor();
  await rows.first().getByRole('link', { name: admin.email }).click();
  await page.waitForURL('**/team/audit?who=*');
  expect(new URL(page.url()).searchParams.get('who')).toBe(await idOf(admin));
  const addresses: string[] = [];
  page.on('framenavigated', (frame) => addresses.push(frame.url()));
  await page.getByLabel('From (UTC)').focus();
  await page.keyboard.type('01022020');
  await page.waitForURL(({ searchParams }) => searchParams.get('from') === '2020-01-02');
  // The first digits of a year are no year.
  expect(addresses.filter((address) => address.includes('from=0'))).toEqual([]);
  await page.getByLabel('To (UTC)').fill('2020-01-31');
  await page.getByText('Nothing like this was done').waitFor();
  expect(page.url()).toContain('to=2020-01-31');
  await page.getByRole('link', { name: 'Show what everybody did' }).click();
  await page.waitForURL((url) => !url.searchParams.has('who'));
  await page.getByRole('link', { name: 'Show everything' }).click();
  await rows.nth(49).waitFor();
  await window.close();
});
