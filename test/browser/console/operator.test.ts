import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sealOrigin } from '../../../control-plane/services/instances/origin.js';
import { eventually } from '../../../scripts/eventually.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { FakeAgent } from '../../harness/fake-agent.js';

const HOSTILE = `<img src=x onerror=alert(1)> "quoted" ${'W'.repeat(20)}`;

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

async function openAsOperator(options?: Parameters<TestConsole['open']>[1]): Promise<ConsoleWindow> {
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  return test.open(operator, options);
}

/** Notes whether the window loads a script with these words. */
function watchFor(window: ConsoleWindow, words: string): { isLoaded: boolean; scripts: number } {
  const seen = { isLoaded: false, scripts: 0 };
  window.page.on('response', (response) => {
    if (!response.url().endsWith('.js')) return;
    // A page that is left meanwhile takes its answers along.
    const text = response.text().catch(() => '');
    void text.then((script) => {
      seen.scripts += 1;
      seen.isLoaded ||= script.includes(words);
    });
  });
  return seen;
}

/** Opens the dialog of an offer before there is a machine, and leaves it by each of its buttons, also where machines cannot be read. */
async function offersNothingYet(window: ConsoleWindow): Promise<void> {
  const { page } = window;
  const dialog = page.getByRole('dialog', { name: 'Offer GPUs of a machine' });
  const machines = '**/v1/operator/machines?*';
  window.expectComplaints(/422/);
  await page.route(machines, (route) =>
    route.fulfill({ status: 422, json: { code: 'VALIDATION_FAILED', message: 'not now', request_id: 'r' } }),
  );
  await window.goTo('/operator/offers?machine=');
  await dialog.getByText('not now').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.unroute(machines);
  await window.goTo('/operator/offers?machine=');
  await dialog.getByRole('button', { name: 'Cancel' }).waitFor();
  await dialog.getByRole('link', { name: 'Add a machine' }).click();
  await page.waitForURL('**/operator/machines/new');
  await window.goTo('/operator');
}

it('leads from an empty control plane over one line to a machine that is offered, and reprices', async () => {
  const window = await openAsOperator();
  const { page } = window;
  const seen = watchFor(window, 'Needs an act now');
  await window.goTo('/operator');
  const next = page.locator('[aria-current=step]');
  await next.getByRole('link', { name: 'Add a machine' }).waitFor();
  await window.checkAccess();
  await window.shoot('operator-first-minutes');
  await offersNothingYet(window);
  await next.getByRole('link', { name: 'Add a machine' }).click();
  await eventually('the page for operators', () => seen.isLoaded);
  await page.getByLabel('Hosts that it lets in').fill('2');
  await page.getByLabel('Hours for which it works').fill('1');
  await page.getByRole('button', { name: 'Make the line to paste' }).click();
  await page.getByLabel('Address that hosts dial').fill(test.control.grpcAddress);
  const line = await page.getByLabel('Line to paste').innerText();
  const [, address = '', token = ''] = /--control-plane (\S+) --token (enr_\S+)$/.exec(line) ?? [];
  await page.getByText('Waiting for the host').waitFor();
  const tokens = page.getByRole('table', { name: 'Tokens with which a host can enroll' });
  await tokens.getByRole('row').filter({ hasText: 'any host' }).getByText('0 of 2').waitFor();
  const agent = await FakeAgent.enroll(address, token, {
    name: HOSTILE,
    diskQuota: 'none',
    now: () => test.control.clock.monotonic(),
  });
  test.control.agents.push(agent);
  const arrived = page.getByRole('region', { name: HOSTILE });
  await arrived.getByText('Its agent has not connected yet').waitFor();
  await agent.connect();
  await next.getByText('does not limit the disks').waitFor();
  await next.getByText('The doctor has not reported yet').waitFor();
  const fine = { check: 'clock', verdict: 'VERDICT_OK', what: 'synchronized' };
  const slow = { check: 'disk', verdict: 'VERDICT_WARNING', what: 'it is slow', advice: 'buy another' };
  const full = { check: 'disk', verdict: 'VERDICT_FAILURE', what: HOSTILE, advice: 'make <b>room</b>' };
  agent.say({ findingReport: { findings: [fine, slow, full] } });
  const toMend = arrived.getByRole('list', { name: 'To mend' });
  await toMend.getByRole('listitem').filter({ hasText: 'failure' }).getByText('make <b>room</b>').waitFor();
  expect(await toMend.getByRole('listitem').allInnerTexts()).toEqual([
    expect.stringMatching(/^failure\s+disk: <img/),
    expect.stringMatching(/^warning\s+disk: it is slow/),
  ]);
  await arrived.getByText('1 check is fine').click();
  await arrived.getByText('clock: synchronized').waitFor();
  await window.checkAccess();
  await window.shoot('operator-add');
  await arrived.getByRole('button', { name: 'Waive quotas' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Waive quotas' }).click();
  await next.getByText('Nothing keeps renters away').waitFor();
  agent.say({ findingReport: { findings: [fine, slow] } });
  await next.getByRole('link', { name: 'Make an offer' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Price in dollars per hour').fill('1.25');
  await window.checkAccess();
  await window.shoot('operator-offer');
  await dialog.getByRole('button', { name: 'Offer' }).click();
  const offers = page.getByRole('table', { name: 'Offers' });
  await offers.getByText('$1.25/h').waitFor();
  await offers.getByRole('button', { name: 'Reprice' }).click();
  await dialog.getByLabel('Price in dollars per hour').fill('1.3333333');
  await dialog.getByRole('button', { name: 'Reprice' }).click();
  await dialog.getByText('at most six digits').waitFor();
  await dialog.getByLabel('Price in dollars per hour').fill('1.333333');
  await dialog.getByRole('button', { name: 'Reprice' }).click();
  await offers.getByText('$1.333333/h').waitFor();
  await window.shoot('operator-offers');
  const { items } = await test.control.operator.get<{ items: { price_per_hour_micro: number }[] }>(
    '/v1/operator/offers',
  );
  expect(items.map(({ price_per_hour_micro }) => price_per_hour_micro)).toEqual([1_333_333]);
  await page.goBack();
  await arrived.getByText('1 × Fake GPU for $1.333333/h').waitFor();
  await next.waitFor({ state: 'detached' });
  await tokens.getByText('1 of 2').waitFor();
  await tokens.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('There is none: no host can enroll.').waitFor();
  await page.getByRole('button', { name: 'Make another line' }).click();
  await page.getByLabel('Line to paste').waitFor();
  await page.getByRole('button', { name: 'Make another line' }).waitFor();
  await tokens.getByRole('button', { name: 'Revoke' }).click();
  await window.checkAccess();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('There is none: no host can enroll.').waitFor();
  await window.close();
});

it('lists what needs an act, leads to the machine, and acts on it', async () => {
  const agent = await test.control.host({ name: `rack ${HOSTILE}` });
  const window = await openAsOperator();
  const { page } = window;
  agent.disconnect();
  const path = `/v1/operator/machines/${agent.hostId}`;
  const isAway = async () => !(await test.control.operator.get<{ connected: boolean }>(path)).connected;
  await eventually('the machine to be away', isAway);
  await window.goTo('/operator');
  const need = page.getByRole('listitem').filter({ hasText: `rack ${HOSTILE} is away` });
  await need.waitFor();
  await window.shoot('operator-overview');
  await window.checkAccess();
  await need.getByRole('link', { name: 'Look at the machine' }).click();
  await page.getByRole('heading', { level: 1, name: 'rack' }).waitFor();
  await page.getByRole('button', { name: 'Cordon' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Cordon' }).click();
  await page.getByRole('button', { name: 'Uncordon' }).waitFor();
  await page.getByText('away, cordoned', { exact: true }).waitFor();
  await page.getByText('Its host reports nothing that keeps renters away.').waitFor();
  await window.shoot('operator-machine');
  await window.checkAccess();
  await page.getByRole('button', { name: 'Declare lost' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Declare lost' }).click();
  await page.getByText('lost', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click();
  await page.waitForURL('**/operator/machines');
  await page.getByRole('table', { name: 'Machines' }).waitFor();
  expect(await page.getByRole('link', { name: `rack ${HOSTILE}` }).count()).toBe(0);
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText('Nothing. All machines are there').waitFor();
  await page.getByRole('link', { name: 'Quarantine' }).click();
  await page.getByText('Nothing is in quarantine').waitFor();
  await page.getByRole('link', { name: 'Audit log' }).click();
  await page.getByRole('table', { name: 'What operators have done' }).getByText('machine.lost').first().waitFor();
  await window.shoot('operator-audit');
  await window.checkAccess();
  await window.close();
});

it('credits, suspends and restores an organization, on a phone, too', async () => {
  const renter = await test.control.renter(0);
  await renter.api.request('PATCH', '/v1/orgs/current', { name: HOSTILE });
  const window = await openAsOperator({ width: 360, height: 740 });
  const { page } = window;
  await window.goTo('/operator/organizations');
  const bar = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  expect(await bar.allInnerTexts()).toEqual(['Overview', 'Machines', 'All instances', 'Organizations']);
  await page.getByLabel('Name, address of a member, or id').fill('<IMG');
  await page.keyboard.press('Enter');
  await window.shoot('operator-organizations');
  await page.getByRole('link', { name: HOSTILE }).click();
  await page.getByRole('table', { name: 'Members' }).getByText(renter.email).waitFor();
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Credit' }).click();
  await dialog.getByLabel('Amount in dollars').fill('5.000001');
  await dialog.getByLabel('Reason').fill('welcome');
  await dialog.getByText(`Credit ${HOSTILE} with $5.000001`).waitFor();
  await dialog.getByRole('button', { name: 'Credit' }).click();
  await page.getByRole('link', { name: 'Ledger' }).click();
  await page.getByRole('table', { name: 'Ledger' }).getByText('$5.000001').waitFor();
  await page.getByRole('button', { name: 'Suspend' }).click();
  await dialog.getByLabel('Reason').fill('it attacks <b>others</b>');
  await window.checkAccess();
  await window.shoot('operator-suspend');
  await dialog.getByRole('button', { name: 'Suspend' }).click();
  await page.getByText('it attacks <b>others</b>').waitFor();
  await window.checkAccess();
  await window.shoot('operator-organization');
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  const suspended = await renter.api.get<{ suspension: unknown }>('/v1/orgs/current');
  expect(suspended.suspension).not.toBeNull();
  const keptDays = async () => {
    const { suspension } = await renter.api.get<{ suspension: { since: string; disks_kept_until: string } }>(
      '/v1/orgs/current',
    );
    return (Date.parse(suspension.disks_kept_until) - Date.parse(suspension.since)) / 86_400_000;
  };
  await page.getByRole('button', { name: 'Change the suspension' }).click();
  expect(await dialog.getByLabel('Reason').inputValue()).toBe('it attacks <b>others</b>');
  await dialog.getByLabel('Days for which disks are kept').fill('60');
  await dialog.getByLabel('Reason').fill('it attacks many');
  await dialog.getByRole('button', { name: 'Change the suspension' }).click();
  await page.getByText(/^Suspended since .+: it attacks many$/).waitFor();
  expect(await keptDays()).toBe(60);
  // What a colleague has changed meanwhile holds, and what was typed and not sent does not come back.
  const longer = { reason: 'it attacks many', keep_disks_days: 90 };
  await test.control.operator.post(`/v1/operator/organizations/${renter.organizationId}/suspend`, longer);
  await page.reload();
  for (const typed of ['5', '7']) {
    await page.getByRole('button', { name: 'Change the suspension' }).click();
    expect(await dialog.getByLabel('Days for which disks are kept').inputValue()).toBe('90');
    await dialog.getByLabel('Days for which disks are kept').fill(typed);
    await dialog.getByRole('button', { name: 'Keep it as it is' }).click();
    await dialog.waitFor({ state: 'detached' });
  }
  await page.getByRole('button', { name: 'Restore' }).click();
  await dialog.getByLabel('Reason').fill('it has stopped');
  await dialog.getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('button', { name: 'Suspend' }).waitFor();
  const restored = await renter.api.get<{ suspension: unknown }>('/v1/orgs/current');
  expect(restored.suspension).toBeNull();
  await window.close();
});

it('adopts a workload of which only its host knows', async () => {
  const agent = await test.control.host({ name: 'restored', gpus: 1 });
  const [renter, offerId] = [await test.control.renter(), await test.control.offer(agent)];
  const templateId = await test.control.template();
  const own = await renter.api.post<{ id: string }>('/v1/templates', { name: 'Own', image: 'own:1' });
  const gpuUuids = (agent.inventory['gpus'] as { uuid: string }[]).map(({ uuid }) => uuid);
  const instanceId = randomUUID();
  agent.disconnect();
  const state = 'WORKLOAD_STATE_RUNNING';
  agent.workloads.set(instanceId, { state, sequence: 7, sshPort: 40_123, gpuUuids, lines: [], diskGb: 40 });
  await agent.connect();
  const window = await test.open({ ...renter, api: test.control.operator });
  const { page } = window;
  await window.goTo('/operator');
  await page.getByText('restored has a workload in quarantine').waitFor();
  await page.getByRole('link', { name: 'Adopt or remove it' }).click();
  const table = page.getByRole('table', { name: 'Workloads in quarantine' });
  await table.getByRole('button', { name: 'Adopt' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Template that it shows').selectOption(templateId);
  await dialog.getByLabel('Offer whose terms apply').selectOption(offerId);
  await dialog.getByRole('button', { name: 'Adopt' }).click();
  await dialog.getByText('Choose the organization first.').waitFor();
  await dialog.getByRole('searchbox', { name: 'Organization that gets it' }).fill(renter.organizationId);
  await dialog.getByRole('button', { name: 'Find: Organization that gets it' }).click();
  await dialog.getByRole('link', { name: "Renter's organization" }).waitFor();
  expect(await dialog.getByLabel('Template that it shows').inputValue()).toBe('');
  await dialog.getByLabel('Template that it shows').selectOption(own.id);
  await dialog.getByLabel('Disk in GB').fill('50');
  await dialog.getByLabel('Label').fill('found again');
  await window.checkAccess();
  await window.shoot('operator-adopt');
  await dialog.getByRole('button', { name: 'Adopt' }).click();
  await page.getByText('Nothing is in quarantine').waitFor();
  expect(await renter.api.get(`/v1/instances/${instanceId}`)).toMatchObject({
    status: 'running',
    disk_gb: 50,
    label: 'found again',
  });
  await page.goto(`/operator/machines/${agent.hostId}`);
  await page.getByRole('list', { name: 'GPUs' }).getByText("Renter's organization").waitFor();
  await page.getByRole('table', { name: 'Offers' }).getByText('$1.00/h').first().waitFor();
  await page.getByRole('link', { name: 'Its revenue by day' }).click();
  await page.waitForURL(`**/operator/money/revenue?machine=${agent.hostId}`);
  await page.goBack();
  await page.getByRole('link', { name: 'What operators have done' }).click();
  await page.waitForURL(`**/operator/audit?of=${agent.hostId}`);
  await page.goBack();
  await window.shoot('operator-rented');
  await window.close();
});

it('asks for the offer and the template that the host names and the restored database does not know', async () => {
  const { control } = test;
  const agent = await control.host({ name: 'older', gpus: 1 });
  const [renter, offerId] = [await control.renter(), await control.offer(agent)];
  const [gone, templateId] = [await control.template({ name: 'Gone' }), await control.template({ name: 'There' })];
  await control.operator.delete(`/v1/operator/templates/${gone}`);
  const gpuUuids = (agent.inventory['gpus'] as { uuid: string }[]).map(({ uuid }) => uuid);
  const instanceId = randomUUID();
  const origin = sealOrigin(control.core.platform.encryption, {
    instance_id: instanceId,
    organization_id: renter.organizationId,
    template_id: gone,
    offer_id: randomUUID(),
    label: 'kept',
    ssh_public_key: '',
    disk_gb: 40,
    price_per_hour_micro: 1,
    storage_price_per_gb_hour_micro: 1,
    release_stopped_after_ms: null,
  });
  agent.disconnect();
  const state = 'WORKLOAD_STATE_RUNNING';
  agent.workloads.set(instanceId, { state, sequence: 7, sshPort: 40_123, gpuUuids, lines: [], diskGb: 40, origin });
  await agent.connect();
  const window = await openAsOperator();
  const { page } = window;
  await window.goTo('/operator/quarantine');
  await page.getByRole('button', { name: 'Adopt' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('But its offer is not known here').waitFor();
  await dialog.getByLabel('Template that it shows').selectOption(templateId);
  await dialog.getByLabel('Offer whose terms apply').selectOption(offerId);
  expect(await dialog.getByLabel('Disk in GB').count()).toBe(0);
  await window.checkAccess();
  await dialog.getByRole('button', { name: 'Adopt' }).click();
  await page.getByText('Nothing is in quarantine').waitFor();
  expect(await renter.api.get(`/v1/instances/${instanceId}`)).toMatchObject({
    status: 'running',
    disk_gb: 40,
    label: 'kept',
    price_per_hour_micro: 1e6,
  });
  await window.close();
});

it('shows and loads nothing of it for a renter', async () => {
  const window = await test.open(await test.control.renter());
  const { page } = window;
  const seen = watchFor(window, 'Needs an act now');
  await window.goTo('/operator');
  await page.getByText('There is no page at this address').waitFor();
  await window.goTo('/operator/machines/new');
  await page.getByText('There is no page at this address').waitFor();
  await window.goTo('/instances');
  await eventually('the scripts', () => seen.scripts > 0);
  expect(await page.getByRole('link', { name: 'Quarantine' }).count()).toBe(0);
  expect(seen.isLoaded).toBe(false);
  await window.close();
});

it('gives one line for a machine that has nothing yet, and the token apart from it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-release-'));
  const hostRelease = join(folder, 'gpurent-0.3.0-linux-x64.tar.gz');
  writeFileSync(hostRelease, 'a release');
  const { url } = test.control;
  await test.control.restart({ hostRelease, publicUrl: url, publicGrpcAddress: 'gpus.example:8090' });
  const window = await openAsOperator();
  const { page } = window;
  await window.goTo('/operator/machines/new');
  await page.getByRole('button', { name: 'Make the line to paste' }).click();
  const sum = createHash('sha256').update('a release').digest('hex');
  const line = `curl -fsSL ${url}/install | sh -s -- --sha256 ${sum}`;
  expect(await page.getByLabel('Line that installs the agent').innerText()).toBe(line);
  expect(await page.getByLabel('Enrollment token').innerText()).toMatch(/^enr_\S+$/);
  await window.checkAccess();
  await window.shoot('operator-one-line');
  await window.close();
  rmSync(folder, { recursive: true });
});
