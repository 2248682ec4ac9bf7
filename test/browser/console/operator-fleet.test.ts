import { afterAll, beforeAll, expect, it } from 'vitest';
import { VERSION } from '../../../shared/version.js';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import { FakeAgent } from '../../harness/fake-agent.js';
import { addApp } from '../../harness/second-factors.js';

const HOSTILE = `<img src=x onerror=alert(1)> "quoted" ${'W'.repeat(20)}`;

let test: TestConsole;
let renter: Renter;
let templateId: string;
beforeAll(async () => {
  test = await TestConsole.start();
  renter = await test.control.renter();
  templateId = await test.control.template();
});
afterAll(() => test.stop());

async function operatorIn(): Promise<{ window: ConsoleWindow; operator: Renter }> {
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  return { operator, window: await test.open(operator) };
}

async function deploy(offer_id: string, label: string): Promise<string> {
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', {
    offer_id,
    template_id: templateId,
    disk_gb: 10,
    label,
  });
  await statusIs(renter.api, id, 'running');
  return id;
}

const machineOf = (agent: FakeAgent) =>
  test.control.operator.get<Record<string, unknown>>(`/v1/operator/machines/${agent.hostId}`);
const path = (agent: FakeAgent) => `/operator/machines/${agent.hostId}`;

it('shows each GPU with who uses it, what the host reports and what has happened, and stops an instance', async () => {
  const agent = await test.control.host({ name: HOSTILE, gpus: 3 });
  await agent.claim({ agentVersion: '0.0.1', reportsFindings: false });
  const id = await deploy(await test.control.offer(agent), 'train <b>me</b>');
  test.control.advance(60_000);
  await agent.measure(id, { endedMsAgo: 1, gpus: [{ usePercent: 73 }] });
  const sick = (agent.inventory['gpus'] as { healthy: boolean; reason: string }[])[2];
  Object.assign(sick ?? {}, { healthy: false, reason: 'Xid 79: it has fallen off the bus' });
  agent.beat();
  await eventually('the GPU to be unhealthy', async () => JSON.stringify(await machineOf(agent)).includes('Xid 79'));
  // In the first two minutes of a control plane, nothing is told.
  for (let waited = 0; waited < 120_000; waited += 20_000) {
    test.control.advance(20_000);
    await agent.speak(id);
  }
  const { window } = await operatorIn();
  const { page } = window;
  await window.goTo('/operator/machines');
  await page.getByRole('link', { name: 'With an old agent' }).press('Enter');
  await page.waitForURL('**outdated=true');
  await page.getByRole('table', { name: 'Machines' }).getByText(`upgrade to ${VERSION}`).first().waitFor();
  await window.checkAccess();
  await window.shoot('operator-machines');
  await page.getByRole('link', { name: HOSTILE }).press('Enter');
  const gpus = page.getByRole('list', { name: 'GPUs' });
  await gpus.getByText('73 % used, 73 % in the last hour').waitFor();
  expect(await gpus.getByRole('listitem').count()).toBe(3);
  await gpus.getByRole('listitem').filter({ hasText: 'unhealthy' }).getByText('fallen off the bus').waitFor();
  const findings = page.getByRole('list', { name: 'Findings' });
  await findings.getByText(`Its agent is 0.0.1: upgrade it to ${VERSION}.`).waitFor();
  await page.getByText('Not reported by this version of its agent').waitFor();
  await page.getByRole('table', { name: 'Events' }).getByText('is unhealthy: Xid 79').waitFor();
  await gpus.getByRole('link', { name: "Renter's organization" }).waitFor();
  await gpus.getByRole('link', { name: 'train <b>me</b>' }).press('Enter');
  await page.waitForURL(`**#${id}`);
  await window.checkAccess();
  await window.shoot('operator-fleet-machine');
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Tell its renters' }).press('Enter');
  await dialog.getByLabel('Message').fill('a <b>fan</b> is broken');
  await dialog.getByLabel('Message').press('Enter');
  await page.getByText('Told 1 organization').waitFor();
  await page.getByRole('button', { name: `Stop: ${id}` }).press('Enter');
  await dialog.getByText('The disk is kept').waitFor();
  await dialog.getByLabel('Reason').fill('it overheats');
  await dialog.getByLabel('Reason').press('Enter');
  await page.getByRole('table', { name: 'Instances' }).getByText('stopped').waitFor();
  const { items } = await renter.api.get<{ items: { message: string }[] }>(`/v1/instances/${id}/events`);
  expect(items.map(({ message }) => message)).toContain('an operator stops this instance: it overheats');
  await window.close();
});

it('asks for a proof before it destroys, and keeps what was typed', async () => {
  const agent = await test.control.host({ name: 'proof' });
  const id = await deploy(await test.control.offer(agent), 'gone');
  const { window, operator } = await operatorIn();
  await addApp(test.control, operator.api);
  test.control.clock.advance(16 * 60_000);
  window.expectComplaints(/403/);
  const { page } = window;
  await window.goTo(path(agent));
  await page.getByRole('button', { name: `Destroy: ${id}` }).click();
  const dialog = page.getByRole('dialog', { name: `Destroy gone (${id.slice(0, 8)}) of` });
  await dialog.getByLabel('Reason').fill('it attacks others');
  await dialog.getByRole('button', { name: 'Destroy' }).click();
  const remedy = dialog.getByRole('link', { name: 'Show that it is you, then do it again' });
  const back = encodeURIComponent(path(agent));
  expect(await remedy.getAttribute('href')).toBe(`/account/prove?return_to=${back}`);
  expect(await dialog.getByLabel('Reason').inputValue()).toBe('it attacks others');
  await statusIs(renter.api, id, 'running');
  await window.checkAccess();
  await window.close();
});

it('schedules maintenance, waives quotas, and revokes the credentials, each with its consequence', async () => {
  const agent = await test.control.host({ name: 'acts', diskQuota: 'none' });
  agent.say({
    findingReport: { findings: [{ check: 'disk quota', verdict: 'VERDICT_WARNING', what: 'none', advice: 'use XFS' }] },
  });
  const { window } = await operatorIn();
  const { page } = window;
  await window.goTo(path(agent));
  await page.getByRole('list', { name: 'Findings' }).getByText('does not limit the disks').waitFor();
  await page.getByRole('list', { name: 'To mend' }).getByText('use XFS').waitFor();
  await page.getByText(/^Reported /).waitFor();

  await page.getByRole('button', { name: 'Schedule' }).press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Nothing can be deployed or started during the window').waitFor();
  await dialog.getByLabel('From').fill('2090-01-01T10:00');
  await dialog.getByLabel('Until').fill('2090-01-01T09:00');
  window.expectComplaints(/422/);
  await dialog.getByRole('button', { name: 'Schedule' }).click();
  await dialog.getByRole('alert').waitFor();
  await dialog.getByLabel('Until').fill('2090-01-01T12:00');
  await window.checkAccess();
  await dialog.getByRole('button', { name: 'Schedule' }).click();
  await page.getByRole('button', { name: 'Cancel the window' }).waitFor();
  expect((await machineOf(agent))['maintenance']).not.toBeNull();
  const question = page.getByRole('alertdialog');
  await page.getByRole('button', { name: 'Cancel the window' }).press('Enter');
  await question.getByRole('button', { name: 'Cancel the window' }).press('Enter');
  await page.getByText('No window is scheduled.').waitFor();

  await page.getByRole('button', { name: 'Waive quotas' }).click();
  await question.getByText('One renter can fill the disk').waitFor();
  await question.getByRole('button', { name: 'Waive quotas' }).click();
  await page.getByText('Nothing keeps renters away.').waitFor();
  await page.getByRole('button', { name: 'Withdraw waiver' }).click();
  await question.getByRole('button', { name: 'Withdraw waiver' }).click();
  await page.getByRole('button', { name: 'Waive quotas' }).waitFor();
  expect((await machineOf(agent))['disk_quota_waived']).toBe(false);

  await page.getByRole('button', { name: 'Revoke credentials' }).click();
  await question.getByText('nobody can stop them from here').waitFor();
  await question.getByRole('button', { name: 'Revoke credentials' }).click();
  await page.getByText('away', { exact: true }).first().waitFor();
  await expect(agent.connect()).rejects.toThrow(/revoked/);

  await page.getByRole('button', { name: 'Enroll it again' }).click();
  await page.getByLabel('Address that hosts dial').fill(test.control.grpcAddress);
  const line = await page.getByLabel('Line to paste').innerText();
  const [, address = '', token = ''] = /--control-plane (\S+) --token (enr_\S+) --again$/.exec(line) ?? [];
  expect(await page.getByLabel('Line for a host that has lost its state').innerText()).toBe(
    line.replace(' --again', ''),
  );
  await window.checkAccess();
  await window.shoot('operator-enroll-again');
  // Its GPUs are those of the machine, and would be refused to any other.
  const again = await FakeAgent.enroll(address, token, { name: 'acts', diskQuota: 'none' });
  test.control.agents.push(again);
  await again.connect();
  expect(again.hostId).toBe(agent.hostId);
  await page.getByText('connected, it does not limit').waitFor();
  await window.close();
});
