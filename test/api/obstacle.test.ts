import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

it('a host that takes nothing new is not offered, its operator reads why, and a reason has an end', async () => {
  const agent = await test.host({ gpus: 1 });
  const offerId = await test.offer(agent);
  const { api } = await test.renter();
  const stateIs = (state: string) =>
    eventually(`the offer to be ${state}`, async () => {
      return (await api.get<{ state: string }>(`/v1/offers/${offerId}`)).state === state;
    });
  const obstacle = async () =>
    (await test.operator.get<{ obstacle: string | null }>(`/v1/operator/machines/${agent.hostId}`)).obstacle;
  await stateIs('available');
  expect(await obstacle()).toBeNull();
  agent.beat({ obstacle: 'x'.repeat(100_000) });
  await stateIs('unavailable');
  expect(await obstacle()).toMatch(/^x{4000}$/);
  agent.beat();
  await stateIs('available');
  expect(await obstacle()).toBeNull();
});

it('a GPU of which an older agent reports no memory is not offered', async () => {
  const agent = await test.host({ gpus: 1 });
  const gpus = (agent.inventory['gpus'] as object[]).map((gpu) => ({ ...gpu, memoryMb: 0 }));
  const shown = async () =>
    (
      await test.operator.get<{ gpus: { healthy: boolean; reason: string | null }[] }>(
        `/v1/operator/machines/${agent.hostId}`,
      )
    ).gpus;
  expect(await shown()).toMatchObject([{ healthy: true }]);
  await agent.claim({ inventory: { ...agent.inventory, gpus } });
  agent.beat({ gpus });
  await eventually('it to be unhealthy', async () => (await shown())[0]?.healthy === false);
  expect(await shown()).toMatchObject([{ reason: 'the host reports no memory of it; upgrade its agent' }]);
});
