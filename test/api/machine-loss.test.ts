import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

const machineOf = (agent: FakeAgent) => `/v1/operator/machines/${agent.hostId}`;

async function offered(gpus = 4) {
  const agent = await test.host({ gpus });
  return { agent, body: { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 } };
}

async function deployed(body: object): Promise<string> {
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return id;
}

const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);

async function goes(agent: FakeAgent): Promise<void> {
  agent.disconnect();
  await eventually('the host to be away', async () => {
    return !(await test.operator.get<{ connected: boolean }>(machineOf(agent))).connected;
  });
}

describe('a machine that is declared lost', () => {
  it('must be away: what is connected is not lost', async () => {
    const { agent, body } = await offered();
    const id = await deployed(body);
    const before = test.dump();
    expect(await test.operator.request('POST', `${machineOf(agent)}/lost`)).toMatchObject({
      status: 409,
      body: {
        code: 'MACHINE_IN_USE',
        message: expect.stringContaining('destroy each of its instances with a reason') as string,
      },
    });
    expect(test.dump()).toEqual(before);
    expect((await read(id)).status).toBe('running');
  });

  it('is emptied while it is connected, as the refusals say: cordoned, each instance destroyed, removed', async () => {
    const { agent, body } = await offered();
    const ids = [await deployed(body), await deployed(body)];
    await test.operator.post(`${machineOf(agent)}/cordon`);
    for (const path of [`${machineOf(agent)}/lost`, machineOf(agent)]) {
      const method = path === machineOf(agent) ? 'DELETE' : 'POST';
      const { body: refusal } = await test.operator.request<{ message: string }>(method, path);
      expect(refusal.message).toContain('destroy each of its instances');
    }
    const { items } = await test.operator.get<{ items: { id: string }[] }>(
      `/v1/operator/instances?machine_id=${agent.hostId}`,
    );
    expect(items.map(({ id }) => id).sort()).toEqual(ids.sort());
    for (const { id } of items) {
      const answer = await test.operator.request('DELETE', `/v1/operator/instances/${id}`, { reason: 'it leaves' });
      expect(answer.status).toBe(202);
      await statusIs(renter.api, id, 'destroyed');
    }
    expect((await test.operator.request('DELETE', machineOf(agent))).status).toBe(204);
  });

  it('ends what ran or came up there, with a reason; stopped disks stay and refuse to start', async () => {
    const { agent, body } = await offered();
    const [running, stopped] = [await deployed(body), await deployed(body)];
    await renter.api.post(`/v1/instances/${stopped}/stop`);
    await statusIs(renter.api, stopped, 'stopped');
    agent.automatic = false;
    const { id: creating } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await goes(agent);
    expect(await test.operator.post(`${machineOf(agent)}/lost`)).toMatchObject({ lost: true, cordoned: true });
    expect(await read(running)).toMatchObject({
      status: 'error',
      error_code: 'workload_lost',
      error_message: expect.stringContaining('lost') as string,
      allowed_actions: ['destroy'],
    });
    expect(await read(creating)).toMatchObject({ status: 'error', error_code: 'provision_failed', started_at: null });
    expect(await read(stopped)).toMatchObject({ status: 'stopped', error_code: 'disk_gone' });
    const before = test.dump();
    expect(await renter.api.request('POST', `/v1/instances/${stopped}/start`)).toMatchObject({
      status: 409,
      body: { code: 'HOST_UNREACHABLE' },
    });
    expect(test.dump()).toEqual(before);
  });

  it('does not keep anybody waiting who destroys, before or after', async () => {
    const { agent, body } = await offered();
    const [first, second] = [await deployed(body), await deployed(body)];
    await goes(agent);
    expect(await renter.api.request('DELETE', `/v1/instances/${first}`)).toMatchObject({
      status: 202,
      body: { status: 'destroying' },
    });
    await test.operator.post(`${machineOf(agent)}/lost`);
    await statusIs(renter.api, first, 'destroyed');
    expect(await renter.api.request('DELETE', `/v1/instances/${second}`)).toMatchObject({
      status: 202,
      body: { status: 'destroying' },
    });
    expect(await statusIs(renter.api, second, 'destroyed')).toMatchObject({ access_token: null });
  });

  it('is cleaned up should it come back, stays cordoned, and sells no GPU before that', async () => {
    const { agent, body } = await offered(2);
    const [destroyed, running] = [await deployed(body), await deployed(body)];
    await goes(agent);
    await renter.api.request('DELETE', `/v1/instances/${destroyed}`);
    await test.operator.post(`${machineOf(agent)}/lost`);
    await statusIs(renter.api, destroyed, 'destroyed');
    agent.automatic = false;
    await agent.connect();
    await eventually('both clean-ups', () => agent.held.length === 2);
    await test.operator.post(`${machineOf(agent)}/uncordon`);
    expect(await renter.api.get(`/v1/offers/${body.offer_id}`)).toMatchObject({ state: 'unavailable' });
    for (const command of Array.from(agent.held)) {
      expect(command.desired).toBe(command.instanceId === running ? 'stopped' : 'absent');
      agent.done(command);
    }
    await eventually('the offer', async () => {
      return (await renter.api.get<{ state: string }>(`/v1/offers/${body.offer_id}`)).state === 'available';
    });
    expect(await test.operator.get(machineOf(agent))).toMatchObject({
      lost: false,
      gpus: [{ instance_id: null }, { instance_id: null }],
    });
    expect((await read(running)).status).toBe('error');
  });

  it('undoes a start, and lets a stop land, that it was in the middle of', async () => {
    const { agent, body } = await offered();
    const [starting, stopping] = [await deployed(body), await deployed(body)];
    await renter.api.post(`/v1/instances/${starting}/stop`);
    await statusIs(renter.api, starting, 'stopped');
    agent.automatic = false;
    await renter.api.post(`/v1/instances/${stopping}/stop`);
    const start = renter.api.request('POST', `/v1/instances/${starting}/start`);
    agent.accept(
      await eventually('the start', () =>
        agent.held.find(({ instanceId, running }) => instanceId === starting && running),
      ),
    );
    expect((await start).status).toBe(202);
    await goes(agent);
    await test.operator.post(`${machineOf(agent)}/lost`);
    expect(await read(starting)).toMatchObject({
      status: 'stopped',
      error_code: 'disk_gone',
      error_message: expect.stringContaining('lost') as string,
    });
    expect(await read(stopping)).toMatchObject({ status: 'stopped', error_code: 'disk_gone' });
    agent.held.length = 0;
    await agent.connect();
    await eventually('what undoes the start', () =>
      agent.held.some(({ instanceId, desired }) => instanceId === starting && desired === 'stopped'),
    );
  });
});

describe('the disk of what is stopped on a machine that is declared lost', () => {
  const burn = async () =>
    (await renter.api.get<{ burn_per_hour_micro: number }>('/v1/orgs/current')).burn_per_hour_micro;
  const events = async (id: string) =>
    (await renter.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`)).items;

  async function stoppedAndLost() {
    const { agent, body } = await offered();
    const before = await burn();
    const id = await deployed(body);
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    expect(await burn()).toBe(before + 10 * 100);
    await goes(agent);
    await test.operator.post(`${machineOf(agent)}/lost`);
    return { agent, id, before };
  }

  it('is gone with it: the instance says so and burns nothing, and so once the machine is removed', async () => {
    const { agent, id, before } = await stoppedAndLost();
    expect(await read(id)).toMatchObject({
      status: 'stopped',
      error_code: 'disk_gone',
      error_message: expect.stringContaining('declared lost') as string,
    });
    expect((await events(id))[0]?.kind).toBe('disk_gone');
    expect(await burn()).toBe(before);
    test.advance(3_600_000);
    const { spend_micro } = await read(id);
    test.advance(3_600_000);
    expect((await read(id)).spend_micro).toBe(spend_micro);
    await test.operator.request('DELETE', machineOf(agent));
    expect(await read(id)).toMatchObject({ error_message: expect.stringContaining('was removed') as string });
    expect((await events(id))[0]).toMatchObject({
      kind: 'disk_gone',
      message: expect.stringContaining('was removed') as string,
    });
    expect(await burn()).toBe(before);
  });

  it('comes back with the machine, and is charged and can be started again', async () => {
    const { agent, id, before } = await stoppedAndLost();
    await agent.connect();
    expect(await read(id)).toMatchObject({ status: 'stopped', error_code: null, error_message: null });
    expect((await events(id))[0]?.kind).toBe('disk_back');
    expect(await burn()).toBe(before + 10 * 100);
    await renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(renter.api, id, 'running');
  });

  it('is said to be gone, once, where the machine comes back without it', async () => {
    const { agent, id } = await stoppedAndLost();
    agent.workloads.delete(id);
    await agent.connect();
    expect(await read(id)).toMatchObject({ error_message: expect.stringContaining('without the disk') as string });
    const { length } = await events(id);
    agent.disconnect();
    await agent.connect();
    expect(await events(id)).toHaveLength(length);
  });
});

describe('a machine that is removed', () => {
  it('must be empty, or lost', async () => {
    const { agent, body } = await offered();
    const id = await deployed(body);
    const before = test.dump();
    expect(await test.operator.request('DELETE', machineOf(agent))).toMatchObject({
      status: 409,
      body: { code: 'MACHINE_IN_USE' },
    });
    expect(test.dump()).toEqual(before);
    await renter.api.delete(`/v1/instances/${id}`);
    await statusIs(renter.api, id, 'destroyed');
    expect((await test.operator.request('DELETE', machineOf(agent))).status).toBe(204);
    await eventually('its stream to end', () => !agent.connected);
    await expect(agent.connect()).rejects.toThrow(/an operator has removed this host; .*enroll --new/);
    expect((await test.operator.request('GET', machineOf(agent))).status).toBe(404);
  });

  it('leaves offers that cannot be pinned, and disks that are gone', async () => {
    const { agent, body } = await offered();
    const id = await deployed(body);
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    await goes(agent);
    await test.operator.post(`${machineOf(agent)}/lost`);
    expect((await test.operator.request('DELETE', machineOf(agent))).status).toBe(204);
    const before = test.dump();
    expect(await renter.api.request('POST', '/v1/instances', body)).toMatchObject({
      status: 409,
      body: { code: 'OFFER_NOT_PINNABLE' },
    });
    expect(await renter.api.request('POST', `/v1/instances/${id}/start`)).toMatchObject({
      status: 409,
      body: { code: 'START_REFUSED', message: expect.stringContaining('no longer holds') as string },
    });
    expect(test.dump()).toEqual(before);
    const { items } = await renter.api.get<{ items: { id: string }[] }>('/v1/offers');
    expect(items.map((offer) => offer.id)).not.toContain(body.offer_id);
    await renter.api.delete(`/v1/instances/${id}`);
    await statusIs(renter.api, id, 'destroyed');
  });
});
