import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { TokenBucket } from '../../control-plane/domain/token-bucket.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { fakeGpuUuid } from '../harness/fake-inventory.js';

const MEBIBYTE = 1024 * 1024;

let test: TestControlPlane;
let renter: Renter;
let templateId: string;
let rogue: FakeAgent;
let honest: { agent: FakeAgent; id: string };

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
  const agent = await test.host({ gpus: 1 });
  honest = { agent, id: await rentOn(agent) };
});
beforeEach(async () => {
  rogue = await test.host({ gpus: 1 });
});
afterAll(() => test.stop());

async function rentOn(agent: FakeAgent): Promise<string> {
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return id;
}

/** The neighbour is as it was, and can be stopped and started. */
async function isUnharmed(): Promise<void> {
  const { agent, id } = honest;
  expect(agent.connected).toBe(true);
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped');
  await renter.api.post(`/v1/instances/${id}/start`);
  await statusIs(renter.api, id, 'running');
}

it.each([
  [
    'heartbeats',
    (index: number) => ({ heartbeat: { dockerAvailable: true, gpus: [], running: [], diskFreeGb: index } }),
  ],
  ['progress', (index: number) => ({ progress: { instanceId: honest.id, kind: 'pulling', message: `${index}` } })],
  ['messages of nothing', () => ({})],
])('a host that floods with %s is cut off, may come back in a minute, and harms nobody', async (_what, message) => {
  for (let index = 0; index < 6_000 && rogue.connected; index++) rogue.say(message(index));
  await eventually('the cut', () => !rogue.connected);
  expect(rogue.closedBecause).toContain('said too much');
  await expect(rogue.connect()).rejects.toThrow(/may come back in a minute/);
  await isUnharmed();
  for (let seconds = 0; seconds < 61; seconds += 10) {
    test.clock.advance(10_000);
    honest.agent.beat();
  }
  await rogue.connect();
});

it('large messages count for more', async () => {
  const text = 'x'.repeat(MEBIBYTE - 1_000);
  for (let index = 0; index < 60 && rogue.connected; index++)
    rogue.say({ progress: { instanceId: honest.id, kind: 'pulling', message: text } });
  await eventually('the cut', () => rogue.closedBecause.includes('said too much'));
  await isUnharmed();
});

it('hellos with many workloads count for more: each workload is stored before anybody else is served', async () => {
  const gpuUuids = Array.from({ length: 8 }, (_, index) => fakeGpuUuid(1, index));
  const workloads = () => Array.from({ length: 400 }, () => ({ instanceId: randomUUID(), sequence: 1, gpuUuids }));
  const greet = async () => {
    for (let round = 0; round < 8; round++) await rogue.claim({ instances: workloads() });
  };
  await expect(greet()).rejects.toThrow('said too much');
  await isUnharmed();
});

it('one that is too large ends the stream, and nothing else', async () => {
  rogue.say({ progress: { instanceId: honest.id, kind: 'pulling', message: 'x'.repeat(2 * MEBIBYTE) } });
  await eventually('the cut', () => !rogue.connected);
  expect(rogue.closedBecause).toMatch(/RESOURCE_EXHAUSTED/);
  await isUnharmed();
  await rogue.connect();
});

it('an allowance grows with time, up to its burst', () => {
  const allowance = new TokenBucket(10, 2);
  expect(allowance.take(10, 0)).toBe(true);
  expect(allowance.take(1, 0)).toBe(false);
  expect(allowance.take(1, 500)).toBe(true);
  expect(allowance.take(1, 500)).toBe(false);
  // A clock that went back gives nothing.
  expect(allowance.take(1, 0)).toBe(false);
  expect(allowance.take(11, 1_000_000)).toBe(false);
  expect(allowance.take(10, 1_000_000)).toBe(true);
});
