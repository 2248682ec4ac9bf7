import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

async function isConnected(agent: FakeAgent): Promise<boolean> {
  return (await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`)).connected;
}

async function runningOn(agent: FakeAgent): Promise<string> {
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return id;
}

describe('enrollment', () => {
  it('takes a token as often as it allows, and no other', async () => {
    const token = await test.enrollmentToken(2);
    for (const name of ['a', 'b']) (await FakeAgent.enroll(test.grpcAddress, token, { name })).close();
    const before = test.dump();
    await expect(FakeAgent.enroll(test.grpcAddress, token)).rejects.toThrow(/used up/);
    await expect(FakeAgent.enroll(test.grpcAddress, 'enr_wrong')).rejects.toThrow(/ask the operator/);
    expect(test.dump()).toEqual(before);
  });

  it('takes no token that has expired or was revoked', async () => {
    const token = await test.operator.post<{ id: string; token: string }>('/v1/operator/enrollment-tokens', {});
    await test.operator.delete(`/v1/operator/enrollment-tokens/${token.id}`);
    await expect(FakeAgent.enroll(test.grpcAddress, token.token)).rejects.toThrow(/revoked/);
    const late = await test.enrollmentToken();
    test.clock.advance(25 * 3_600_000);
    await expect(FakeAgent.enroll(test.grpcAddress, late)).rejects.toThrow(/expired/);
  });
});

describe('a stream', () => {
  it('with a wrong credential is refused', async () => {
    const agent = await test.host();
    await expect(agent.connect('agt_wrong')).rejects.toThrow(/belongs to no host/);
    expect(await isConnected(agent)).toBe(true);
  });

  it('fences the older one of its host', async () => {
    const agent = await test.host();
    await agent.connect();
    await eventually('the older stream to end', () => agent.closedBecause.includes('ended'));
    expect(agent.connected).toBe(true);
    expect(await isConnected(agent)).toBe(true);
    await runningOn(agent);
  });

  it('that is silent for too long is not connected, and changes no workload', async () => {
    const agent = await test.host();
    const id = await runningOn(agent);
    test.clock.advance(31_000);
    expect(await isConnected(agent)).toBe(false);
    expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
    agent.beat();
    await eventually('the host to be connected', () => isConnected(agent));
    expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
  });

  it('that breaks changes no workload, and what was open goes out again', async () => {
    const agent = await test.host();
    const id = await runningOn(agent);
    agent.disconnect();
    await eventually('the control plane to notice', async () => !(await isConnected(agent)));
    await renter.api.post(`/v1/instances/${id}/stop`);
    expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('stopping');
    await agent.connect();
    await statusIs(renter.api, id, 'stopped');
  });
});

describe('a host speaks of itself alone:', () => {
  it("another host's command, workload and log are not its own", async () => {
    const victim = await test.host({ automatic: false });
    const other = await test.host();
    const body = { offer_id: await test.offer(victim), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    const command = await eventually('the command', () => victim.held[0]);
    other.done(command);
    await eventually('the answer to be read', () => other.acknowledged.includes(command.commandId));
    other.workloads.set(id, { state: 'WORKLOAD_STATE_ABSENT', sequence: 9, sshPort: 1, gpuUuids: [], lines: [] });
    other.report(id);
    expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('creating');
    victim.done(command);
    await statusIs(renter.api, id, 'running');
    victim.print(id, 'true');
    const read = async () => (await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs`)).lines;
    await eventually('the true line', async () => (await read()).includes('true'));
    const [subscriptionId] = victim.subscriptions.keys();
    other.say({ logChunk: { subscriptionId, lines: [{ at: '', text: 'false' }], caughtUp: true } });
    other.beat();
    victim.print(id, 'also true');
    await eventually('the next true line', async () => (await read()).includes('also true'));
    expect(await read()).not.toContain('false');
  });
});

/** An instance whose host says this of it when it has come up. */
async function reporting(template_id: string, links: { jupyterUrl: string; openUrl: string }): Promise<InstanceBody> {
  const agent = await test.host({ automatic: false });
  const body = { offer_id: await test.offer(agent), template_id, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const { commandId, instanceId, sequence } = await eventually('the command', () => agent.held[0]);
  const observation = { state: 'WORKLOAD_STATE_RUNNING', sshPort: 40_000, runId: '1', ...links };
  agent.say({ commandResult: { commandId, instanceId, sequence, outcome: 'COMMAND_OUTCOME_DONE', observation } });
  const up = await statusIs(renter.api, id, 'running');
  await renter.api.delete(`/v1/instances/${id}`);
  return up;
}

describe('a host that says what cannot be', () => {
  it.each([
    ['http://203.0.113.7:40001/lab', true],
    ['https://203.0.113.7:40001/', true],
    ['http://203.0.113.70:40001/', false],
    ['http://203.0.113.7.evil.example/', false],
    ['http://203.0.113.7@evil.example/', false],
    ['http://evil.example/?http://203.0.113.7/', false],
    ['javascript:alert(1)//203.0.113.7', false],
    ['http://203.0.113.7/' + 'x'.repeat(3_000), false],
  ])('is not believed where an access token would go elsewhere (%#)', async (link, isShown) => {
    const ports = [{ port: 7000, protocol: 'http', label: 'app', open_button: true, guard: 'proxy' }];
    const template = await test.template({ mode: ['ssh', 'jupyter'], ports });
    const up = await reporting(template, { jupyterUrl: link, openUrl: link });
    for (const shown of [up['jupyter_url'], up['open_url']]) {
      if (isShown) expect(shown).toContain(`token=${String(up['access_token'])}`);
      else expect(shown).toBeNull();
    }
  });

  it('gives no links to what its template has not', async () => {
    const link = 'http://203.0.113.7:40001/';
    const up = await reporting(await test.template(), { jupyterUrl: link, openUrl: link });
    expect(up).toMatchObject({ jupyter_url: null, open_url: null });
  });

  it('harms nobody: ports, addresses, numbers and words beyond measure', async () => {
    const agent = await test.host({ automatic: false });
    const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    const command = await eventually('the command', () => agent.held[0]);
    agent.stale(command, 2 ** 53 - 1);
    agent.say({ progress: { instanceId: id, kind: 'k'.repeat(100), message: 'm'.repeat(100_000) } });
    const { commandId, instanceId, sequence } = command;
    const observation = {
      state: 'WORKLOAD_STATE_RUNNING',
      sshPort: 22,
      openUrl: 'javascript:alert(1)',
      jupyterUrl: 'https://ok/',
    };
    agent.say({ commandResult: { commandId, instanceId, sequence, outcome: 'COMMAND_OUTCOME_DONE', observation } });
    const up = await statusIs(renter.api, id, 'running');
    expect(up).toMatchObject({ ssh_port: null, ssh_host: null, open_url: null, jupyter_url: null });
    const events = await renter.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`);
    expect(Math.max(...events.items.map(({ message }) => message.length))).toBeLessThanOrEqual(4_000);
    agent.workloads.set(id, { state: 'WORKLOAD_STATE_RUNNING', sequence: 1, sshPort: 1, gpuUuids: [], lines: [] });
    agent.exit(id, { code: 1, lastLines: Array.from({ length: 20 }, () => 'x'.repeat(10_000)) });
    const ended = await statusIs(renter.api, id, 'error');
    expect(ended.error_message?.length).toBeLessThanOrEqual(4_100);
    agent.automatic = true;
    await renter.api.delete(`/v1/instances/${id}`);
    await statusIs(renter.api, id, 'destroyed');
  });
});

describe('a control plane that starts again', () => {
  it('sends what was open and finds everything as it was', async () => {
    const agent = await test.host({ automatic: false });
    const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    const command = await eventually('the command', () => agent.held[0]);
    // It takes effect while the control plane is away.
    agent.lose(command);
    await test.restart();
    await eventually('the broken stream', () => !agent.connected);
    await agent.connect();
    await statusIs(renter.api, id, 'running');
    expect(agent.received.filter(({ commandId }) => commandId === command.commandId).length).toBeGreaterThan(1);
    expect(agent.workloads.size).toBe(1);
  });

  it('numbers above what a host has seen, and tells it so', async () => {
    const agent = await test.host();
    const id = await runningOn(agent);
    agent.disconnect();
    Object.assign(agent.workloads.get(id) ?? {}, { sequence: 50 });
    const { floors } = await agent.connect();
    expect(floors).toContainEqual({ instanceId: id, sequence: 50, reportNumber: 0, running: true, commandOpen: false });
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    expect(agent.received.at(-1)?.sequence).toBe(51);
  });

  it('hears of a workload that vanished meanwhile', async () => {
    const agent = await test.host();
    const id = await runningOn(agent);
    agent.disconnect();
    agent.workloads.delete(id);
    await agent.connect();
    expect((await statusIs(renter.api, id, 'error')).error_code).toBe('workload_lost');
  });
});
