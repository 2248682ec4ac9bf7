import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { makePublicKey } from '../harness/keys.js';
import type { WireCommand } from '../harness/wire.js';
import { describeHost, type SuiteHost } from '../suites/host-suite.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

async function deployOn(agent: FakeAgent, fields: Record<string, unknown> = {}): Promise<InstanceBody> {
  const offer_id = await test.offer(agent);
  return renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id: templateId, disk_gb: 10, ...fields });
}

function nextCommand(agent: FakeAgent): Promise<WireCommand> {
  return eventually('a command', () => agent.held[0]);
}

describe('a host that answers by itself', () => {
  let host: SuiteHost;
  beforeAll(async () => {
    const agent = await test.host();
    const key = await renter.api.post<{ id: string }>('/v1/ssh-keys', {
      name: 'key',
      public_key: makePublicKey('-t', 'ed25519'),
    });
    host = { renter: renter.api, offerId: await test.offer(agent), templateId, sshKeyId: key.id };
  });
  describeHost(() => host);
});

describe('commands', () => {
  it('are sent again with the same identity until they are answered', async () => {
    const agent = await test.host({ automatic: false });
    const { id } = await deployOn(agent);
    const command = await nextCommand(agent);
    test.advance(6_000);
    await eventually('the command again', () => agent.received.length === 2);
    expect(agent.received[1]).toMatchObject({ commandId: command.commandId, sequence: command.sequence });
    agent.done(command);
    await statusIs(renter.api, id, 'running');
    await eventually('the acknowledgement', () => agent.acknowledged.includes(command.commandId));
    // An answer that comes twice is one.
    agent.repeat(command);
    agent.beat();
    test.advance(60_000);
    expect(agent.received).toHaveLength(2);
    const events = await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
    expect(events.items.map(({ kind }) => kind)).toEqual(['running', 'created']);
  });

  it('state the GPUs that were claimed and the environment in its order of precedence', async () => {
    const agent = await test.host({ automatic: false, gpus: 1 });
    const template_id = await test.template({
      env: [
        { key: 'A', value: 'template' },
        { key: 'B', value: 'template', secret: true },
        { key: 'TOKEN', value: '${SERVICE_ACCESS_TOKEN}' },
      ],
    });
    const overrides = [
      { key: 'A', value: 'mine' },
      { key: 'B', value: null },
      { key: 'GPU_COUNT', value: '99' },
      { key: 'TOKEN', value: 'mine' },
      { key: 'NVIDIA_VISIBLE_DEVICES', value: 'all' },
    ];
    const instance = await deployOn(agent, { template_id, env_overrides: overrides });
    const { running } = await nextCommand(agent);
    const env = Object.fromEntries(running?.spec.env.map(({ key, value }) => [key, value]) ?? []);
    const token = instance['access_token'];
    expect(env).toEqual({
      A: 'mine',
      B: 'template',
      GPU_COUNT: '1',
      TOKEN: token,
      SERVICE_ACCESS_TOKEN: token,
      JUPYTER_TOKEN: token,
    });
    expect(running?.spec.gpuUuids).toHaveLength(1);
    const template = instance['template'] as { env: { key: string; value: string | null }[]; readme: null };
    expect(template.env.find(({ key }) => key === 'B')?.value).toBeNull();
    expect(template.readme).toBeNull();
  });

  it('that fail leave an instance in error with the reason, its GPUs free', async () => {
    const agent = await test.host({ automatic: false, gpus: 1 });
    const instance = await deployOn(agent);
    agent.fail(await nextCommand(agent), 'IMAGE_UNAVAILABLE', 'the image cannot be pulled: not found');
    const failed = await statusIs(renter.api, instance.id, 'error');
    expect(failed).toMatchObject({
      error_code: 'provision_failed',
      error_message: 'the image cannot be pulled: not found',
    });
    expect(failed.allowed_actions).toEqual(['destroy']);
    const offer = await renter.api.get<{ state: string }>(`/v1/offers/${(instance['offer'] as { id: string }).id}`);
    expect(offer.state).toBe('available');
  });

  it('that a newer one has closed change nothing when they are answered late', async () => {
    const agent = await test.host({ automatic: false });
    const { id } = await deployOn(agent);
    const provision = await nextCommand(agent);
    await renter.api.delete(`/v1/instances/${id}`);
    const destroy = await eventually('the destroy', () => agent.held.find(({ desired }) => desired === 'absent'));
    expect(destroy.sequence).toBeGreaterThan(provision.sequence);
    agent.done(provision);
    await eventually('the acknowledgement', () => agent.acknowledged.includes(provision.commandId));
    expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('destroying');
    agent.done(destroy);
    await statusIs(renter.api, id, 'destroyed');
  });

  it('get a new identity from each DELETE', async () => {
    const agent = await test.host({ automatic: false });
    const { id } = await deployOn(agent);
    const first = await renter.api.request('DELETE', `/v1/instances/${id}`);
    const second = await renter.api.request('DELETE', `/v1/instances/${id}`);
    expect([first.status, second.status]).toEqual([202, 200]);
    await eventually('the last destroy', () => agent.received.at(-1)?.sequence === 3);
  });

  it('that the host calls stale go out again above what it has seen', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    agent.automatic = false;
    await renter.api.post(`/v1/instances/${id}/stop`);
    const command = await nextCommand(agent);
    agent.stale(command, 41);
    await eventually('the answer to be read', () => agent.acknowledged.includes(command.commandId));
    test.advance(6_000);
    const renumbered = await eventually('the renumbered command', () =>
      agent.received.find(({ sequence }) => sequence === 42),
    );
    expect(renumbered.commandId).toBe(command.commandId);
    agent.done(renumbered);
    await statusIs(renter.api, id, 'stopped');
  });

  it('and make nothing that the host calls stale: it was made and removed since', async () => {
    const agent = await test.host({ automatic: false });
    const { id } = await deployOn(agent);
    const provision = await nextCommand(agent);
    agent.stale(provision, 4);
    expect(await statusIs(renter.api, id, 'error')).toMatchObject({ error_code: 'provision_failed' });
    const release = await eventually('the release', () => agent.held.find(({ desired }) => desired === 'stopped'));
    expect(release.sequence).toBe(6);
    agent.done(release);
  });
});

describe('a stop or destroy', () => {
  it('that the host cannot do now stays open and is sent again until it is done', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    agent.automatic = false;
    for (const [action, desired, status] of [
      ['POST', 'stopped', 'stopped'],
      ['DELETE', 'absent', 'destroyed'],
    ] as const) {
      await renter.api.request(action, `/v1/instances/${id}${action === 'POST' ? '/stop' : ''}`);
      const command = await eventually('the command', () => agent.held.find((held) => held.desired === desired));
      agent.fail(command, 'DOCKER_UNREACHABLE', 'Docker does not answer on this host');
      await eventually('the answer to be read', () => agent.acknowledged.includes(command.commandId));
      agent.forget(command);
      test.advance(6_000);
      agent.done(await eventually('the command again', () => agent.held.find((held) => held.desired === desired)));
      await statusIs(renter.api, id, status);
    }
    const events = await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
    expect(events.items.map(({ kind }) => kind)).toContain('stop_delayed');
  });
});

describe('a start', () => {
  async function stoppedOn(agent: FakeAgent): Promise<string> {
    agent.automatic = true;
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    agent.automatic = false;
    return id;
  }

  it('that the host refuses goes back to stopped with its reason', async () => {
    const agent = await test.host();
    const id = await stoppedOn(agent);
    const answer = renter.api.request('POST', `/v1/instances/${id}/start`);
    agent.refuse(await nextCommand(agent), 'PORT_TAKEN', 'port 40000 is used by another process');
    expect(await answer).toMatchObject({
      status: 409,
      body: { code: 'START_REFUSED', message: 'port 40000 is used by another process' },
    });
    await statusIs(renter.api, id, 'stopped');
  });

  it('without an answer goes back to stopped, is undone, and can be tried again', async () => {
    const agent = await test.host();
    const id = await stoppedOn(agent);
    const answer = renter.api.request('POST', `/v1/instances/${id}/start`);
    const start = await nextCommand(agent);
    test.clock.advance(10_000);
    expect(await answer).toMatchObject({ status: 503, body: { code: 'START_UNAVAILABLE' } });
    await statusIs(renter.api, id, 'stopped');
    // It did land after all: what comes next undoes it.
    agent.lose(start);
    const undo = await eventually('the compensating stop', () =>
      agent.held.find(({ desired }) => desired === 'stopped'),
    );
    agent.done(undo);
    agent.automatic = true;
    agent.beat();
    expect((await renter.api.request('POST', `/v1/instances/${id}/start`)).status).toBe(202);
    await statusIs(renter.api, id, 'running');
  });

  it('that is refused leaves the undoing of an earlier one in force', async () => {
    const agent = await test.host();
    const id = await stoppedOn(agent);
    const first = renter.api.request('POST', `/v1/instances/${id}/start`);
    const landed = await nextCommand(agent);
    test.clock.advance(10_000);
    expect((await first).status).toBe(503);
    agent.lose(landed);
    const second = renter.api.request('POST', `/v1/instances/${id}/start`);
    const later = await eventually('the second start', () =>
      agent.held.find(({ desired, sequence }) => desired === 'running' && sequence > landed.sequence),
    );
    agent.refuse(later, 'DOCKER_UNREACHABLE', 'Docker does not answer on this host');
    expect((await second).status).toBe(409);
    const undo = await eventually('the undoing', () =>
      agent.held.find(({ desired, sequence }) => desired === 'stopped' && sequence > later.sequence),
    );
    agent.done(undo);
    expect(agent.workloads.get(id)?.state).toBe('WORKLOAD_STATE_STOPPED');
  });

  it('that fails after all tells its caller at once, and why', async () => {
    const agent = await test.host();
    const id = await stoppedOn(agent);
    const answer = renter.api.request('POST', `/v1/instances/${id}/start`);
    agent.fail(await nextCommand(agent), 'GPUS_UNAVAILABLE', 'the GPU is in use on the host');
    expect(await answer).toMatchObject({
      status: 409,
      body: { code: 'START_REFUSED', message: 'the GPU is in use on the host' },
    });
    expect(await statusIs(renter.api, id, 'stopped')).toMatchObject({ error_code: 'gpus_unavailable' });
  });

  it('on a host that is not connected is refused and nothing is recorded', async () => {
    const agent = await test.host();
    const id = await stoppedOn(agent);
    agent.disconnect();
    await eventually('the control plane to notice', async () => {
      const machine = await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`);
      return !machine.connected;
    });
    const before = test.dump();
    const answer = await renter.api.request('POST', `/v1/instances/${id}/start`);
    expect(answer).toMatchObject({ status: 409, body: { code: 'HOST_UNREACHABLE' } });
    expect(test.dump()).toEqual(before);
  });
});

describe('a workload that ends by itself', () => {
  it.each([
    [{ code: 0 }, 'workload_completed', 'exit code 0'],
    [{ code: 3, lastLines: ['boom'] }, 'workload_failed', 'boom'],
    [{ code: 137, outOfMemory: true }, 'workload_failed', 'out of memory'],
  ])('with %o is in error: %s', async (exit, code, message) => {
    const agent = await test.host({ gpus: 1 });
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    agent.exit(id, exit);
    const ended = await statusIs(renter.api, id, 'error');
    expect(ended.error_code).toBe(code);
    expect(ended.error_message).toContain(message);
    const machine = await test.operator.get<{ gpus: { instance_id: string | null }[] }>(
      `/v1/operator/machines/${agent.hostId}`,
    );
    expect(machine.gpus.map((gpu) => gpu.instance_id)).toEqual([null]);
  });

  it('before it could be reached has run: its log is kept', async () => {
    const agent = await test.host({ automatic: false });
    const { id } = await deployOn(agent);
    agent.doneAndEnded(await nextCommand(agent), { code: 0, lastLines: ['result: 42'] });
    const ended = await statusIs(renter.api, id, 'error');
    expect(ended['started_at']).not.toBeNull();
    agent.close();
    await eventually('its last line', async () => {
      const { lines } = await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs`);
      return lines.includes('result: 42');
    });
  });

  it('under an unfinished stop is that stop', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    agent.automatic = false;
    await renter.api.post(`/v1/instances/${id}/stop`);
    await nextCommand(agent);
    agent.exit(id, { code: 0 });
    expect((await statusIs(renter.api, id, 'stopped')).error_code).toBeNull();
  });

  it('reported twice, or by an older report, changes nothing', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    agent.report(id, 7);
    // What is not newer than that says that it is gone, and is not believed.
    agent.workloads.delete(id);
    agent.report(id, 7);
    agent.report(id, 3);
    agent.print(id);
    await renter.api.get(`/v1/instances/${id}`);
    await statusIs(renter.api, id, 'running');
    agent.report(id, 8);
    await statusIs(renter.api, id, 'error');
    const events = await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
    expect(events.items.map(({ kind }) => kind)).toEqual(['workload_lost', 'running', 'created']);
  });
});

describe('a report of an earlier run that comes late', () => {
  const lateExit = (agent: FakeAgent, id: string, sequence: number, runId: string) =>
    agent.say({
      workloadReport: {
        instanceId: id,
        number: 9_000_000_000_000,
        sequence,
        observation: { state: 'WORKLOAD_STATE_STOPPED', runId, exit: { code: 143 } },
        note: '',
      },
    });

  it('ends no later run, and lands no later stop', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    const firstRun = agent.workloads.get(id)?.runId ?? '';
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    await renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(renter.api, id, 'running');
    lateExit(agent, id, 2, firstRun);
    agent.automatic = false;
    await renter.api.post(`/v1/instances/${id}/stop`);
    const stop = await nextCommand(agent);
    lateExit(agent, id, 2, firstRun);
    // Whatever the host says after it has been heard by now.
    agent.stale(stop, 40);
    await advanceUntil('the stop again', { clock: test, stepMs: 1_000, parties: [() => agent.roundTrip()] }, () => {
      return agent.received.some(({ sequence }) => sequence === 41);
    });
    expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({ status: 'stopping', error_code: null });
  });

  it('of nothing at all lands no provision', async () => {
    const agent = await test.host({ automatic: false });
    const { id } = await deployOn(agent);
    const provision = await nextCommand(agent);
    agent.say({
      workloadReport: {
        instanceId: id,
        number: 1,
        sequence: 1,
        observation: { state: 'WORKLOAD_STATE_ABSENT' },
        note: '',
      },
    });
    agent.done(provision);
    expect(await statusIs(renter.api, id, 'running')).toMatchObject({ error_code: null });
  });
});
