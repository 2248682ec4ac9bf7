import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from '../../client/cli/errors/exit-codes.js';
import { advanceUntil } from '../harness/advance-until.js';
import { CommandLine } from '../harness/command-line.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let operator: CommandLine;
let renter: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter(0);
  const env = { GPURENT_URL: test.url, GPURENT_TOKEN: test.operator.token ?? '' };
  operator = new CommandLine(env, () => test.clock.now());
});
afterAll(async () => {
  operator.remove();
  await test.stop();
});

async function run(line: string, ...last: string[]): Promise<string> {
  const { code, stdout, stderr } = await operator.run([...line.split(' '), ...last]);
  expect({ line, code, stderr: code === 0 ? '' : stderr }).toEqual({ line, code: 0, stderr: '' });
  return stdout;
}

it('an operator enrolls a host, and rents it out', async () => {
  expect(await run('machines add --uses 3 --expires 2h')).toMatch(
    /^scripts\/install-agent --control-plane 127\.0\.0\.1:8090 --token enr_\S+\n$/,
  );
  const warning = expect.stringContaining('No other machine reaches 127.0.0.1:8090') as string;
  expect(await operator.run(['machines', 'add'])).toMatchObject({ code: 0, stderr: warning });
  await test.restart({ publicGrpcAddress: 'hosts.example:1;reboot' });
  // A control plane that lies puts nothing into the line that root pastes.
  expect(await operator.run(['machines', 'add'])).toMatchObject({ code: EXIT.failed, stdout: '' });
  await test.restart({ publicGrpcAddress: 'hosts.example:18090' });
  expect(await run('machines add')).toContain(' --control-plane hosts.example:18090 --token ');
  expect(await operator.run(['machines', 'add'])).not.toMatchObject({ stderr: warning });
  const agent = await test.host({ gpus: 2 });
  const [, id = ''] = /^([0-9a-f]{8})/m.exec(await run('machines')) ?? [];
  expect(agent.hostId.startsWith(id)).toBe(true);
  expect(await run(`machines show ${id}`)).toContain('connected');
  expect(await run(`machines cordon ${id}`)).toContain('cordoned');
  expect(await run(`machines uncordon ${id}`)).toContain('connected');
  const [gpu] = agent.inventory['gpus'] as { uuid: string }[];
  const moved = await test.host({ name: 'moved', givenGpus: [{ ...gpu }] });
  expect(await run('machines show moved')).toContain('belongs to machine fake');
  expect(await run('machines assign-gpus moved')).not.toContain('belongs to machine');
  expect(await run(`machines show ${id}`)).toContain('belongs to machine moved');
  expect(await run(`machines assign-gpus ${id} ${gpu?.uuid}`)).not.toContain('belongs to machine');
  await run('machines remove moved --yes');
  moved.close();
  const from = new Date(test.clock.now() + 86_400_000).toISOString();
  expect(await run(`machines maintenance ${id} --for 2h --from ${from}`)).toContain('maintenance');
  expect(await run(`offers create ${id} 2 --price 0.4 --storage-price 0.0001`)).toContain('$0.40 an hour');
  const [, offer = ''] = /^([0-9a-f]{8})/m.exec(await run('offers all')) ?? [];
  expect(await run(`offers reprice ${offer} --price 0.5`)).toContain('$0.50 an hour');
  expect(await run(`offers withdraw ${offer} --yes`)).toContain('withdrawn');
  expect(await run(`machines remove ${id} --yes`)).toContain('removed');
});

it('an operator upgrades agents, looks how far that is, and stops it', async () => {
  const none = await operator.run(['machines', 'upgrade', '--status']);
  expect(none).toMatchObject({
    code: EXIT.failed,
    stderr: expect.stringContaining('no rollout was started') as string,
  });
  test.core.platform.hostReleaseVersion = '9.9.9';
  const host = await test.host();
  await host.claim({ takesUpgrades: true, agentVersion: '9.9.8' });
  const started = await run('machines upgrade --yes');
  expect(started).toMatch(/version\s+9\.9\.9/);
  expect(started).toMatch(/waiting\s+1/);
  await advanceUntil('the host to be asked', { clock: test, stepMs: 1 }, () => host.upgrades.length > 0);
  host.say({ upgradeReport: { version: '9.9.9', state: 'UPGRADE_STATE_FAILED', reason: 'not signed' } });
  await host.roundTrip();
  expect(await run('machines upgrade --status')).toMatch(/failed\s+1[^]*not signed/);
  expect(await run('machines upgrade --stop')).toMatch(/stopped\s+.*not signed/);
  host.close();
});

it('an operator grants credit, suspends and restores an organization, and reads who has done what', async () => {
  const id = renter.organizationId;
  expect(await run('orgs')).toContain(id.slice(0, 8));
  expect(await run(`credit ${id} 12.5 --yes --reason`, 'a welcome')).toContain('has $12.50 now');
  expect(await run(`credit ${id} --yes --reason correction --`, '-2.5')).toContain('has $10.00 now');
  expect(await run(`suspend ${id} --keep-disks-days 3 --yes --reason`, 'does not answer')).toContain('is suspended');
  expect(await run('orgs')).toContain('suspended');
  expect(await run(`restore ${id} --reason`, 'has answered')).toContain('not suspended any more');
  const log = await run('audit --limit 10');
  expect(log).toContain('suspend');
  expect(log).toContain('operator@example.com');
  const found = await run(`audit --of ${id} --by OPERATOR@example.com --action organization.restore`);
  expect(found).toContain('has answered');
  expect(found).not.toContain('suspend');
});

it('an operator adopts and removes workloads in quarantine', async () => {
  const agent = await test.host({ gpus: 2 });
  const offer = await test.offer(agent);
  const template = await test.template({ name: 'Adopted' });
  await test.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, {
    amount_micro: 50_000_000,
    reason: 'test',
  });
  const machine = await test.operator.get<{ gpus: { uuid: string }[] }>(`/v1/operator/machines/${agent.hostId}`);
  agent.disconnect();
  for (const [index, { uuid }] of machine.gpus.entries())
    agent.workloads.set(randomUUID(), {
      state: 'WORKLOAD_STATE_RUNNING',
      sequence: 7,
      sshPort: 40123 + index,
      gpuUuids: [uuid],
      diskGb: 40,
      lines: [],
    });
  await agent.connect();
  const ids = [...(await run('quarantine')).matchAll(/^([0-9a-f]{8})/gm)].map(([, each = '']) => each);
  expect(ids).toHaveLength(2);
  const adopted = `quarantine adopt ${ids[0] ?? ''} --organization ${renter.organizationId} --template ${template} --offer ${offer} --disk 40`;
  expect(await run(adopted)).toContain('the instance');
  expect(await run(`quarantine remove ${ids[1] ?? ''} --yes`)).toContain('being removed');
});
