import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';

let test: TestControlPlane;
let renters: Renter[];
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

function pick<T>(from: readonly T[], index: number): T {
  const one = from[index % from.length];
  if (one === undefined) throw new Error('there is nothing to pick from');
  return one;
}

const ROUNDS = Number(process.env['TEST_ROUNDS'] ?? 4);

it('200 concurrent deploys for the last GPUs sell each once', { timeout: 300_000 }, async () => {
  // No offer is for more GPUs than its machine has.
  const markets = fc.integer({ min: 1, max: 12 }).chain((gpus) =>
    fc.record({
      gpus: fc.constant(gpus),
      sizes: fc.array(fc.integer({ min: 1, max: Math.min(gpus, 4) }), { minLength: 1, maxLength: 3 }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(markets, async ({ gpus, sizes }) => {
      renters = await Promise.all(Array.from({ length: 4 }, () => test.renter(1_000_000_000)));
      const agent = await test.host({ gpus, diskGb: 20_000 });
      const offers = await Promise.all(sizes.map(async (size) => ({ size, id: await test.offer(agent, size) })));
      const answers = await Promise.all(
        Array.from({ length: 200 }, async (_, index) => {
          const { api } = pick(renters, index);
          const offer = pick(offers, index);
          const body = { offer_id: offer.id, template_id: templateId, disk_gb: 10 };
          const { status, body: answer } = await api.request<InstanceBody>('POST', '/v1/instances', body);
          return { api, size: offer.size, status, answer };
        }),
      );
      const won = answers.filter(({ status }) => status === 201);
      const sold = won.reduce((sum, { size }) => sum + size, 0);
      expect(sold).toBeLessThanOrEqual(gpus);
      expect(gpus - sold).toBeLessThan(Math.min(...sizes));
      const refusals = new Set(answers.filter(({ status }) => status !== 201).map(({ answer }) => answer['code']));
      expect([...refusals]).toEqual(['OFFER_UNAVAILABLE']);
      for (const { api, answer } of won) await statusIs(api, answer.id, 'running');
      const held = [...agent.workloads.values()].flatMap(({ gpuUuids }) => gpuUuids);
      expect(new Set(held).size).toBe(sold);
      expect(held).toHaveLength(sold);
      await Promise.all(won.map(({ api, answer }) => api.delete(`/v1/instances/${answer.id}`)));
      await eventually('every GPU to be free again', async () => {
        const machine = await test.operator.get<{ gpus: { instance_id: string | null }[] }>(
          `/v1/operator/machines/${agent.hostId}`,
        );
        return machine.gpus.every(({ instance_id }) => instance_id === null);
      });
    }),
    { numRuns: ROUNDS },
  );
});

it('an organization that asks for sixty at once gets twenty-five', async () => {
  const renter = await test.renter(1_000_000_000);
  const agent = await test.host({ gpus: 60, diskGb: 20_000 });
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => renter.api.request<InstanceBody>('POST', '/v1/instances', body)),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(25);
  const refusals = new Set(answers.filter(({ status }) => status !== 201).map(({ body: { code } }) => code));
  expect([...refusals]).toEqual(['INSTANCE_LIMIT_REACHED']);
});

it('a request that is sent twenty times at once with one Idempotency-Key is one deploy', async () => {
  const renter = await test.renter(1_000_000_000);
  const agent = await test.host({ gpus: 20, diskGb: 20_000 });
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  const key = { 'Idempotency-Key': 'the same' };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => renter.api.request<InstanceBody>('POST', '/v1/instances', body, key)),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect(new Set(answers.map(({ body: { id } }) => id)).size).toBe(1);
});
