import { afterAll, beforeAll, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;
let other: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  [renter, other] = [await test.renter(), await test.renter()];
  templateId = await test.template();
});
afterAll(() => test.stop());

type Body = InstanceBody & { releases_gpus_at: string | null; gpus_released: boolean };
const read = (id: string) => renter.api.get<Body>(`/v1/instances/${id}`);
const body = (offer_id: string) => ({ offer_id, template_id: templateId, disk_gb: 10 });

async function stopped(hours: number | null) {
  const agent = await test.host({ gpus: 1 });
  const offerId = await test.offer(agent);
  const patch = { release_stopped_after_hours: hours };
  await test.operator.request('PATCH', `/v1/operator/offers/${offerId}`, patch);
  expect(await renter.api.get(`/v1/offers/${offerId}`)).toMatchObject(patch);
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body(offerId));
  await statusIs(renter.api, id, 'running');
  expect(await read(id)).toMatchObject({ ...patch, releases_gpus_at: null });
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped');
  return { agent, offerId, id };
}

const released = (agent: FakeAgent, id: string) =>
  advanceUntil('the release', { clock: test, stepMs: 1_000, parties: [() => agent.roundTrip()] }, async () => {
    return (await read(id)).gpus_released;
  });

/** Hours pass for everybody, and hosts stay connected. */
async function pass(ms: number, agent: FakeAgent, id: string): Promise<void> {
  test.advance(ms);
  agent.beat();
  await read(id);
}

it('an offer that says so gives the GPUs of what is stopped back, and the disk stays', async () => {
  const { agent, offerId, id } = await stopped(2);
  const { releases_gpus_at, gpus_released } = await read(id);
  expect([Date.parse(releases_gpus_at ?? '') - test.clock.now() <= 2 * HOUR_MS, gpus_released]).toEqual([true, false]);
  await pass(2 * HOUR_MS - 60_000, agent, id);
  expect((await other.api.request('POST', '/v1/instances', body(offerId))).status).not.toBe(201);
  await pass(120_000, agent, id);
  await released(agent, id);
  expect(await read(id)).toMatchObject({ status: 'stopped', gpu_release: 'released', releases_gpus_at: null });
  const taken = await other.api.post<InstanceBody>('/v1/instances', body(offerId));
  await statusIs(other.api, taken.id, 'running');
  expect((await renter.api.request('POST', `/v1/instances/${id}/start`)).body).toMatchObject({
    code: 'CAPACITY_UNAVAILABLE',
  });
  await other.api.delete(`/v1/instances/${taken.id}`);
  await statusIs(other.api, taken.id, 'destroyed');
  await renter.api.post(`/v1/instances/${id}/start`);
  await statusIs(renter.api, id, 'running');
});

it('a start of released GPUs that fails on the host gives them back', async () => {
  const { agent, offerId, id } = await stopped(1);
  await pass(HOUR_MS + 60_000, agent, id);
  await released(agent, id);
  agent.automatic = false;
  const before = agent.received.length;
  // Answered once the host has.
  const starting = renter.api.request('POST', `/v1/instances/${id}/start`);
  const command = await eventually('the start', () => agent.received[before]);
  agent.fail(command, 'CONTAINER_FAILED', 'it does not start');
  await starting;
  await statusIs(renter.api, id, 'stopped');
  expect(await read(id)).toMatchObject({ gpus_released: true, error_code: 'start_failed' });
  agent.automatic = true;
  const taken = await other.api.post<InstanceBody>('/v1/instances', body(offerId));
  await statusIs(other.api, taken.id, 'running');
});

it('one that says nothing lets them be held for ever, and what is rented keeps its terms', async () => {
  const { agent, offerId, id } = await stopped(null);
  await test.operator.request('PATCH', `/v1/operator/offers/${offerId}`, { release_stopped_after_hours: 1 });
  await pass(10 * HOUR_MS, agent, id);
  await pass(60_000, agent, id);
  expect(await read(id)).toMatchObject({ releases_gpus_at: null, gpus_released: false, gpu_release: null });
});

it.each([0, 1.5, 8_761, 'a day'])('a time of %s hours is refused', async (hours) => {
  const { offerId } = await stopped(null);
  const answer = await test.operator.request('PATCH', `/v1/operator/offers/${offerId}`, {
    release_stopped_after_hours: hours,
  });
  expect(answer.status).toBe(422);
});
