import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import { describeSettings } from '../../../control-plane/domain/setting.js';
import { eventually } from '../../../scripts/eventually.js';
import { advanceUntil } from '../../harness/advance-until.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs } from '../../harness/control-plane.js';
import { memoryFolder } from '../../harness/memory-folder.js';

const folder = memoryFolder('gpurent-backups-');
interface Backups {
  last_at: string | null;
  usable: boolean;
}

const dollars = (micro = NaN) => `$${micro / 1e6}`;

let test: TestConsole;
let window: ConsoleWindow;
beforeAll(async () => {
  test = await TestConsole.start();
  const environment = { GPURENT_SIGN_UP: 'invitation', GPURENT_SMTP_PASSWORD_FILE: '/etc/hidden' };
  const settings = describeSettings(
    [...Object.keys(environment), 'GPURENT_BACKUP_KEEP', 'GPURENT_SMTP_USER'],
    environment,
    { GPURENT_SIGN_UP: 'open', GPURENT_BACKUP_KEEP: '14' },
  );
  const backups = { folder: join(folder, 'copies'), everyMs: 24 * HOUR_MS, keep: 14 };
  await test.control.restart({ settings, backups });
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  window = await test.open(operator);
});
afterAll(async () => {
  await window.close();
  await test.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('shows backups, workers and settings as they stand, without secrets, and lets the clock be confirmed', async () => {
  const { control } = test;
  const passing = { clock: control, stepMs: MINUTE_MS };
  const backups = async () => (await control.operator.get<{ backups: Backups }>('/v1/operator/control-plane')).backups;
  await advanceUntil('a copy', passing, async () => (await backups()).last_at !== null);
  control.clock.step(HOUR_MS);
  control.advance(MINUTE_MS);
  const { page } = window;
  await window.goTo('/operator/control-plane');
  await page.getByText('in time').waitFor();
  await page.getByText('by the daemon, every 24 hours').waitFor();
  await page.getByText('Somebody set it forward by 1 h').waitFor();
  await window.checkAccess();
  await window.shoot('operator-control-plane');
  await page.getByRole('button', { name: 'Confirm' }).click();
  await page
    .getByRole('alertdialog')
    .getByText(/^The control plane has \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC. Its clock has gone ahead by 3,600 s\.$/)
    .waitFor();
  await window.checkAccess('[role=alertdialog]');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('The clock is trusted.').waitFor();
  rmSync(join(folder, 'copies'), { recursive: true });
  await advanceUntil('the missing folder to be noted', passing, async () => !(await backups()).usable);
  await window.goTo('/operator/control-plane');
  await page.getByText('folder cannot be used', { exact: true }).waitFor();

  await page.getByRole('link', { name: 'Workers' }).click();
  await page.getByRole('table', { name: 'Workers' }).getByRole('row', { name: 'settle' }).getByText('runs').waitFor();
  await window.checkAccess();
  await window.shoot('operator-workers');
  await page.getByRole('link', { name: 'Settings' }).click();
  const table = page.getByRole('table', { name: 'Settings' });
  await table.getByRole('row', { name: 'GPURENT_SIGN_UP invitation changed' }).waitFor();
  await table.getByRole('row', { name: 'GPURENT_BACKUP_KEEP 14 default' }).waitFor();
  await table.getByRole('row', { name: 'GPURENT_SMTP_PASSWORD_FILE set, not shown changed' }).waitFor();
  await table.getByRole('row', { name: 'GPURENT_SMTP_USER not set default' }).waitFor();
  expect(await page.content()).not.toContain('/etc/hidden');
  await window.checkAccess();
  await window.shoot('operator-settings');
  await window.goTo('/operator');
  await page.getByText('Here they sign up by invitation only').waitFor();
});

it('credits what was charged after a stop that a host has ignored, and names the amount', async () => {
  const { control } = test;
  const agent = await control.host({ name: 'deaf', gpus: 1 });
  const renter = await control.renter();
  const body = { offer_id: await control.offer(agent), template_id: await control.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  agent.automatic = false;
  await renter.api.post(`/v1/instances/${id}/stop`);
  const charged = async () => {
    const { items } = await control.operator.get<{ items: { charged_micro: number }[] }>('/v1/operator/ignored-stops');
    return (items[0]?.charged_micro ?? 0) > 0;
  };
  const passing = { clock: control, stepMs: MINUTE_MS / 2, parties: [() => agent.roundTrip()] };
  await advanceUntil('a charge after the stop', passing, charged);
  const { page } = window;
  const dialog = page.getByRole('dialog');
  await window.goTo('/operator/ignored-stops');
  await page.getByRole('table', { name: 'Ignored stops' }).getByText('still charged').waitFor();
  expect(await page.getByRole('navigation', { name: 'Pages' }).locator('[aria-current]').allInnerTexts()).toEqual([
    'All instances',
  ]);
  await page.getByRole('button', { name: `Credit: ${id}` }).click();
  const title = await dialog.getByRole('heading').innerText();
  const { items } = await control.operator.get<{ items: { charged_micro: number }[] }>('/v1/operator/ignored-stops');
  expect(title).toBe(
    `Credit Renter's organization with ${dollars(items[0]?.charged_micro)}, charged after the stop of ${id}`,
  );
  await dialog.getByLabel('Reason').fill('the host did not stop it');
  await window.checkAccess();
  await window.shoot('operator-ignored-stops');
  await dialog.getByRole('button', { name: 'Credit' }).click();
  // More than the title says: until the credit, it was charged.
  const said = await page.getByText(/was credited with/).innerText();
  await page.getByText('No stop was ignored').waitFor();
  const { items: credits } = await renter.api.get<{ items: { reason: string; amount_micro: number }[] }>(
    '/v1/billing/transactions?kind=credit&limit=1',
  );
  expect(credits).toMatchObject([{ reason: 'the host did not stop it' }]);
  expect(said).toBe(`Renter's organization was credited with ${dollars(credits[0]?.amount_micro)}`);
  expect(credits[0]?.amount_micro).toBeGreaterThanOrEqual(items[0]?.charged_micro ?? NaN);
});

it('removes a workload in quarantine after it has said what is lost', async () => {
  const { control } = test;
  const agent = await control.host({ name: 'restored', gpus: 1 });
  const instanceId = randomUUID();
  agent.disconnect();
  const state = 'WORKLOAD_STATE_RUNNING';
  agent.workloads.set(instanceId, { state, sequence: 7, sshPort: 40_123, gpuUuids: [], lines: [], diskGb: 40 });
  await agent.connect();
  const { page } = window;
  await window.goTo('/operator/quarantine');
  await page.getByRole('button', { name: `Remove: ${instanceId}` }).click();
  const question = page.getByRole('alertdialog');
  await question.getByText('Remove the workload and its 40 GB disk from restored').waitFor();
  await question.getByText('It runs: what it does ends.').waitFor();
  await window.checkAccess();
  await window.shoot('operator-quarantine-remove');
  await question.getByRole('button', { name: 'Remove' }).click();
  await eventually('the removal', async () => {
    const { items } = await control.operator.get<{ items: unknown[] }>('/v1/operator/quarantine');
    return items.length === 0;
  });
  await page.reload();
  await page.getByText('Nothing is in quarantine').waitFor();
});
