import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { statusIs, TestControlPlane } from '../harness/control-plane.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { listening } from '../harness/told.js';

let test: TestControlPlane;

beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

interface MachineBody {
  gpus: {
    uuid: string;
    healthy: boolean;
    reason: string | null;
    disputed_with: { id: string; name: string } | null;
  }[];
}

const gpusOf = (agent: FakeAgent) => agent.inventory['gpus'] as { uuid: string }[];
const machineOf = (agent: FakeAgent) => test.operator.get<MachineBody>(`/v1/operator/machines/${agent.hostId}`);
const enroll = (token: string, options: Parameters<typeof FakeAgent.enroll>[2]) =>
  FakeAgent.enroll(test.grpcAddress, token, options);

describe('a host that has lost who it is', () => {
  it('enrolls as a new machine whose GPUs nobody can rent, or with a token of its machine as that machine again', async () => {
    const agent = await test.host({ gpus: 2 });
    agent.disconnect();
    const own = gpusOf(agent).slice(1);
    const token = await test.enrollmentToken(1);
    const newcomer = await enroll(token, { givenGpus: own });
    expect(newcomer.hostId).not.toBe(agent.hostId);
    expect((await machineOf(newcomer)).gpus).toMatchObject([{ healthy: false, disputed_with: { id: agent.hostId } }]);
    await test.operator.delete(`/v1/operator/machines/${newcomer.hostId}`);
    newcomer.close();
    const { token: itsToken } = await test.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', {
      machine_id: agent.hostId,
    });
    const again = await enroll(itsToken, { givenGpus: own });
    expect(again.hostId).toBe(agent.hostId);
    expect((await machineOf(again)).gpus).toMatchObject([{ healthy: true, disputed_with: null }]);
    again.close();
  });

  it('is told which machine it is by the workloads that its Docker holds, and what to do, and keeps its token', async () => {
    const agent = await test.host({ gpus: 1 });
    const token = await test.enrollmentToken(2);
    const earlier = [
      { hostId: 'of another control plane', workloads: 1 },
      { hostId: agent.hostId, workloads: 2 },
    ];
    // While the other one is there, the two share a Docker.
    (await enroll(token, { earlier })).close();
    agent.disconnect();
    await eventually(
      'its end',
      async () => !((await machineOf(agent)) as MachineBody & { connected: boolean }).connected,
    );
    const before = test.dump();
    const refused = enroll(token, { earlier });
    await expect(refused).rejects.toThrow(`this host is already machine fake (${agent.hostId})`);
    await expect(refused).rejects.toThrow(/workloads of that machine.*token of that machine.*first remove it \(DELETE/);
    expect(test.dump()).toEqual(before);
    await test.operator.delete(`/v1/operator/machines/${agent.hostId}`);
    (await enroll(token, { earlier })).close();
  });

  it('may not tell of any number of others', async () => {
    const earlier = Array.from({ length: 65 }, (_, index) => ({ hostId: String(index), workloads: 1 }));
    await expect(enroll(await test.enrollmentToken(1), { earlier })).rejects.toThrow(/more than 64/);
  });

  it('is a new machine once the one that it was is removed', async () => {
    const agent = await test.host({ gpus: 1 });
    agent.disconnect();
    await test.operator.delete(`/v1/operator/machines/${agent.hostId}`);
    (await enroll(await test.enrollmentToken(1), { givenGpus: gpusOf(agent) })).close();
  });
});

describe('a GPU that two machines report', () => {
  interface Offer {
    state: string;
    unavailable_reason: string | null;
  }

  const offerOf = async (agent: FakeAgent) => test.offer(agent);
  const stateOf = async (id: string) => (await offers()).find((offer) => offer.id === id)?.state;
  const offers = async () =>
    (await test.operator.get<{ items: (Offer & { id: string })[] }>('/v1/operator/offers')).items;
  const beat = (agent: FakeAgent, gpus: unknown[]) =>
    agent.say({ heartbeat: { dockerAvailable: true, gpus, diskFreeGb: 1_000 } });
  const assign = (agent: FakeAgent, body: object = {}) =>
    test.operator.request('POST', `/v1/operator/machines/${agent.hostId}/assign-gpus`, body);

  /** Makes a machine with one GPU, and a later one that reports the same GPU beside one of its own. */
  async function makeDispute() {
    const first = await test.host({ gpus: 1, name: 'first' });
    const [gpu] = gpusOf(first);
    test.advance(1_000);
    const second = await test.host({ gpus: 1, name: 'second' });
    gpusOf(second).push({ ...gpu, index: 1 } as { uuid: string });
    const both = gpusOf(second);
    beat(second, both);
    const ofSecond = async () => (await machineOf(second)).gpus.find(({ uuid }) => uuid === gpu?.uuid);
    await eventually('the dispute', ofSecond);
    const ofFirst = async () => (await machineOf(first)).gpus.find(({ uuid }) => uuid === gpu?.uuid);
    return { first, second, gpu: gpu as { uuid: string }, both, ofFirst, ofSecond };
  }

  it('stays on the market by the machine that reported it first, though that misses it and is away', async () => {
    const { first, second, gpu, both, ofFirst, ofSecond } = await makeDispute();
    const [offer, own] = [await offerOf(first), await offerOf(second)];
    const check = async () => {
      expect(await ofSecond()).toMatchObject({ healthy: false, disputed_with: { id: first.hostId, name: 'first' } });
      expect((await ofSecond())?.reason).toContain(`it belongs to machine first (${first.hostId})`);
    };
    await check();
    beat(first, []);
    await eventually('its heartbeat', async () => (await ofFirst()) === undefined);
    beat(second, both);
    await second.connect();
    await check();
    first.disconnect();
    await second.connect();
    await check();
    await first.connect();
    expect(await ofFirst()).toMatchObject({ healthy: true, disputed_with: null });
    expect([await stateOf(offer), await stateOf(own)]).toEqual(['available', 'available']);
    // Of the two GPUs that it reports, one can be rented.
    const two = await test.offer(second, 2);
    expect((await offers()).find(({ id }) => id === two)?.unavailable_reason).toMatch(/1 belong to other machines/);
    expect(gpu.uuid).toBe((await ofFirst())?.uuid);
    first.close();
    second.close();
  });

  it('is told to operators once, with both machines, and needs an act', async () => {
    test.advance(3 * 60_000);
    const told = listening(test);
    const { first, second, gpu, both } = await makeDispute();
    for (let times = 0; times < 3; times++) {
      test.advance(20_000);
      beat(second, times === 1 ? both.slice(0, 1) : both);
      await eventually('its heartbeat', async () => (await machineOf(second)).gpus.length === (times === 1 ? 1 : 2));
    }
    test.advance(20_000);
    expect(told('gpu.disputed').filter(({ subject }) => subject === `machines/${second.hostId}`)).toMatchObject([
      {
        data: {
          machine_name: 'second',
          gpu_uuid: gpu.uuid,
          owner_machine_id: first.hostId,
          owner_machine_name: 'first',
        },
      },
    ]);
    const { needs } = await test.operator.get<{
      needs: { kind: string; items: { machine_id: string; message: string }[] }[];
    }>('/v1/operator/overview');
    const items = needs.find(({ kind }) => kind === 'gpus_disputed')?.items ?? [];
    expect(items.find(({ machine_id }) => machine_id === second.hostId)?.message).toBe(
      `${gpu.uuid} belongs to machine first (${first.hostId})`,
    );
    first.close();
    second.close();
  });

  it('belongs to the other one at once when the first is removed', async () => {
    const { first, second, ofSecond } = await makeDispute();
    first.disconnect();
    await test.operator.delete(`/v1/operator/machines/${first.hostId}`);
    expect(await ofSecond()).toMatchObject({ healthy: true, reason: null, disputed_with: null });
    second.close();
  });

  it('is moved by an operator, unless somebody uses it where it was', async () => {
    const { first, second, gpu, ofFirst, ofSecond } = await makeDispute();
    const renter = await test.renter();
    const body = { offer_id: await offerOf(first), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<{ id: string }>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    const before = test.dump();
    expect(await assign(second)).toMatchObject({
      status: 409,
      body: { code: 'MACHINE_IN_USE', message: expect.stringContaining(`instance ${id} holds`) as string },
    });
    expect((await assign(second, { gpu_uuids: ['GPU-unknown'] })).status).toBe(422);
    expect((await assign(first)).status).toBe(422);
    expect(test.dump()).toEqual(before);
    await renter.api.request('DELETE', `/v1/instances/${id}`);
    await statusIs(renter.api, id, 'destroyed');
    expect((await assign(second, { gpu_uuids: [gpu.uuid] })).status).toBe(200);
    expect(await ofSecond()).toMatchObject({ healthy: true, disputed_with: null });
    expect(await ofFirst()).toMatchObject({ healthy: false, disputed_with: { name: 'second' } });
    // Nobody holds it there any more: the card can go back.
    expect((await assign(first)).status).toBe(200);
    expect(await ofFirst()).toMatchObject({ healthy: true, disputed_with: null });
    first.close();
    second.close();
  });
});
