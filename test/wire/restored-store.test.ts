import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeEach(async () => {
  renter = await test.renter();
});
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);
const act = (id: string, action: 'stop' | 'start') => renter.api.post<InstanceBody>(`/v1/instances/${id}/${action}`);

/** An instance on a host of its own with one GPU, in the given status; its host answers nothing by itself from now on. */
async function instanceIn(status: string) {
  const agent = await test.host({ gpus: 1 });
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  agent.automatic = status !== 'creating';
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  if (status !== 'creating') await statusIs(renter.api, id, 'running');
  if (status === 'stopped' || status === 'starting') {
    await act(id, 'stop');
    await statusIs(renter.api, id, 'stopped');
  }
  agent.automatic = false;
  if (status === 'stopping') await act(id, 'stop');
  if (status === 'starting') {
    void act(id, 'start');
    agent.accept(await eventually('the start', () => agent.held.find(({ desired }) => desired === 'running')));
  }
  if (status === 'destroying') await renter.api.delete(`/v1/instances/${id}`);
  await statusIs(renter.api, id, status);
  return { agent, id, body };
}

/** The host has since been told more than the store knows, and has the workload like this. */
async function hostSays(agent: FakeAgent, instanceId: string, state: 'RUNNING' | 'STOPPED' | 'ABSENT', exit?: object) {
  const { gpus } = await test.operator.get<{ gpus: { uuid: string }[] }>(`/v1/operator/machines/${agent.hostId}`);
  const observation = { state: `WORKLOAD_STATE_${state}`, sshPort: 40_700, runId: 'later', ...(exit ? { exit } : {}) };
  const instances = [{ instanceId, sequence: 20, gpuUuids: gpus.map(({ uuid }) => uuid), observation }];
  return agent.claim({ instances });
}

describe('a store that is older than what its host knows', () => {
  it.each([
    ['creating', 'RUNNING', 'running'],
    ['creating', 'STOPPED', 'stopped'],
    ['creating', 'ABSENT', 'error'],
    ['running', 'RUNNING', 'running'],
    ['running', 'STOPPED', 'stopped'],
    ['running', 'ABSENT', 'error'],
    ['stopping', 'RUNNING', 'running'],
    ['stopping', 'STOPPED', 'stopped'],
    ['stopping', 'ABSENT', 'stopped'],
    ['stopped', 'RUNNING', 'running'],
    ['stopped', 'STOPPED', 'stopped'],
    ['stopped', 'ABSENT', 'stopped'],
    ['starting', 'RUNNING', 'running'],
    ['starting', 'STOPPED', 'stopped'],
    ['starting', 'ABSENT', 'stopped'],
    ['destroying', 'RUNNING', 'destroying'],
    ['destroying', 'STOPPED', 'destroying'],
  ] as const)('takes an instance that is %s, and %s there, for %s', async (status, state, expected) => {
    const { agent, id } = await instanceIn(status);
    test.pretendRestored();
    const { floors } = await hostSays(agent, id, state);
    expect((await read(id)).status).toBe(expected);
    const floor = floors.find(({ instanceId }) => instanceId === id);
    // Only a destroy is still wanted; it is above what the host knows.
    expect(floor?.sequence).toBe(expected === 'destroying' ? 21 : 20);
    const wanted = agent.held.filter(({ sequence }) => sequence > 20);
    expect(wanted.map(({ desired }) => desired)).toEqual(expected === 'destroying' ? ['absent'] : []);
    if (expected === 'running') expect(await read(id)).toMatchObject({ ssh_port: 40_700, gpus_released: false });
  });

  it.each([
    ['creating', 'error'],
    ['starting', 'error'],
    ['running', 'error'],
    ['stopping', 'stopped'],
    ['stopped', 'stopped'],
  ] as const)('takes an instance that is %s, and has ended there for good, for %s', async (status, expected) => {
    const { agent, id } = await instanceIn(status);
    test.pretendRestored();
    await hostSays(agent, id, 'STOPPED', { code: 3, lastLines: ['farewell'] });
    expect((await read(id)).status).toBe(expected);
    if (expected === 'error') expect((await read(id)).error_message).toContain('farewell');
  });

  it('still stops what its renter has asked it to stop since', async () => {
    const { agent, id } = await instanceIn('running');
    agent.disconnect();
    test.pretendRestored();
    await act(id, 'stop');
    await hostSays(agent, id, 'RUNNING');
    expect((await read(id)).status).toBe('stopping');
    const again = await eventually('the stop', () => agent.held.find(({ sequence }) => sequence === 21));
    expect(again.desired).toBe('stopped');
    agent.done(again);
    await statusIs(renter.api, id, 'stopped');
  });

  it('believes no host that claims to know more, unless the store was restored since it was last heard', async () => {
    const { agent, id } = await instanceIn('stopped');
    await hostSays(agent, id, 'RUNNING');
    expect((await read(id)).status).toBe('stopped');
    test.pretendRestored();
    await agent.claim({ instances: [] });
    await hostSays(agent, id, 'RUNNING');
    expect((await read(id)).status).toBe('stopped');
    const stop = await eventually('the stop', () => agent.held.find(({ sequence }) => sequence > 20));
    expect(stop.desired).toBe('stopped');
  });

  it('gives a workload that runs its GPUs back from one that was stopped with them', async () => {
    const { agent, id, body } = await instanceIn('stopped');
    await test.operator.post(`/v1/operator/organizations/${renter.organizationId}/dispute`);
    const release = await eventually('the release', () =>
      agent.held.find(({ instanceId, stopped }) => instanceId === id && stopped?.releaseGpus),
    );
    agent.done(release);
    await eventually('the release to land', async () => (await read(id))['gpus_released']);
    await test.operator.request('DELETE', `/v1/operator/organizations/${renter.organizationId}/dispute`);
    agent.automatic = true;
    const second = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, second.id, 'running');
    await act(second.id, 'stop');
    await statusIs(renter.api, second.id, 'stopped');
    expect(await read(second.id)).toMatchObject({ gpus_released: false });

    test.pretendRestored();
    await hostSays(agent, id, 'RUNNING');
    expect(await read(id)).toMatchObject({ status: 'running', gpus_released: false });
    expect(await read(second.id)).toMatchObject({ status: 'stopped', gpus_released: true, gpu_release: 'released' });
    expect((await renter.api.request('POST', `/v1/instances/${second.id}/start`)).body).toMatchObject({
      code: 'CAPACITY_UNAVAILABLE',
    });
  });
});

describe('two control planes', () => {
  it('a host that has heard of a newer one, or of another one beside this, is refused with what to do', async () => {
    const { agent, id } = await instanceIn('running');
    const welcome = await agent.claim({ epoch: 0 });
    const before = test.dump();
    await expect(agent.claim({ epoch: welcome.epoch + 1, incarnation: 'x' })).rejects.toThrow('newer control plane');
    await expect(agent.claim({ epoch: welcome.epoch, incarnation: 'other' })).rejects.toThrow('restore');
    expect(test.dump()).toEqual(before);
    const gone = () => test.logged(30).filter((line) => line.includes('a host is gone before it was greeted'));
    expect(gone().join()).toMatch(/"reason":"this host has heard of a newer control plane/);
    expect(gone().join()).not.toContain('[object');
    await agent.claim({ epoch: welcome.epoch, incarnation: welcome.incarnation });
    expect((await read(id)).status).toBe('running');
  });

  it('each run has an epoch above the one before', async () => {
    const agent = await test.host();
    const { epoch } = await agent.claim({});
    await test.restart();
    const later = await agent.connect();
    expect(later.epoch).toBeGreaterThan(epoch);
  });
});
