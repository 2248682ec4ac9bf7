import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;

beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

interface MachineBody {
  gpus: { uuid: string; healthy: boolean; reason: string | null }[];
}

const gpusOf = (agent: FakeAgent) => agent.inventory['gpus'] as { uuid: string }[];
const machineOf = (agent: FakeAgent) => test.operator.get<MachineBody>(`/v1/operator/machines/${agent.hostId}`);
const enroll = (token: string, options: Parameters<typeof FakeAgent.enroll>[2]) =>
  FakeAgent.enroll(test.grpcAddress, token, options);

describe('a host that has lost who it is', () => {
  it('is told which machine it is by its GPUs, and what to do, and keeps its token', async () => {
    const agent = await test.host({ gpus: 2 });
    agent.disconnect();
    const own = gpusOf(agent).slice(1);
    const token = await test.enrollmentToken(1);
    const before = test.dump();
    const refused = enroll(token, { givenGpus: own });
    await expect(refused).rejects.toThrow(`this host is already machine fake (${agent.hostId})`);
    await expect(refused).rejects.toThrow(/token of that machine.*first remove it \(DELETE/);
    expect(test.dump()).toEqual(before);
    const { token: itsToken } = await test.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', {
      machine_id: agent.hostId,
    });
    const again = await enroll(itsToken, { givenGpus: own });
    expect(again.hostId).toBe(agent.hostId);
    again.close();
    (await enroll(token, {})).close();
  });

  it('is told so by the workloads that its Docker holds', async () => {
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
    await expect(enroll(token, { earlier })).rejects.toThrow(/its Docker holds workloads of that machine/);
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
  it('is of the one that has reported it for longer, until that is removed or reports it no more', async () => {
    const [first, second] = [await test.host({ gpus: 1 }), await test.host({ gpus: 1 })];
    const [gpu] = gpusOf(first);
    const own = [...gpusOf(second)];
    const both = [
      { ...gpu, index: 0 },
      { ...own[0], index: 1 },
    ];
    const healthOf = async (agent: FakeAgent) =>
      (await machineOf(agent)).gpus.find(({ uuid }) => uuid === gpu?.uuid)?.healthy;
    test.advance(1_000);
    second.say({ heartbeat: { dockerAvailable: true, gpus: both, diskFreeGb: 1_000 } });
    await eventually('the second one’s word', async () => (await machineOf(second)).gpus.length === 2);
    const { gpus } = await machineOf(second);
    expect(gpus.map(({ healthy }) => healthy)).toEqual([false, true]);
    expect(gpus[0]?.reason).toContain(`machine fake (${first.hostId}) has reported this GPU`);
    test.advance(1_000);
    await first.connect();
    expect(await healthOf(first)).toBe(true);
    first.say({ heartbeat: { dockerAvailable: true, gpus: [], diskFreeGb: 1_000 } });
    await eventually('the move', async () => {
      second.say({ heartbeat: { dockerAvailable: true, gpus: both, diskFreeGb: 1_000 } });
      return (await healthOf(second)) === true;
    });
    first.say({ heartbeat: { dockerAvailable: true, gpus: [{ ...gpu, index: 0 }], diskFreeGb: 1_000 } });
    await eventually('the first one’s word', async () => (await healthOf(first)) === false);
    expect(await healthOf(second)).toBe(true);
  });
});
