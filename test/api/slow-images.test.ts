import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;
let agent: FakeAgent;
let offerId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
beforeEach(async () => {
  await test.signInOperator();
  renter = await test.renter();
  agent = await test.host({ gpus: 2, automatic: false });
  offerId = await test.offer(agent);
});
afterAll(() => test.stop());

/** What the renter's organization is held back from, or was lately. */
function heldBack(): string[] {
  const rows = query.selectFrom('slow_images').select('source').where('organization_id', '=', renter.organizationId);
  return test.core.platform.store.transact((tx) => tx.all(rows)).map(({ source }) => source);
}

async function deploy(image: string, by = renter): Promise<InstanceBody> {
  const body = { offer_id: offerId, template_id: await test.template({ image }), disk_gb: 10 };
  return by.api.post<InstanceBody>('/v1/instances', body);
}

async function commandFor({ id }: InstanceBody) {
  return eventually('the command', () => agent.held.find(({ instanceId }) => instanceId === id));
}

/** Deploys and has the host give up its pull. */
async function failSlowly(image: string): Promise<InstanceBody> {
  const instance = await deploy(image);
  agent.fail(await commandFor(instance), 'IMAGE_TOO_SLOW', 'the image cannot be pulled: less than 1 MiB per second');
  return statusIs(renter.api, instance.id, 'error');
}

/** Whether a deploy of the image reaches its host; what was made is destroyed again. */
async function isTried(image: string, by = renter): Promise<boolean> {
  const { id } = await deploy(image, by);
  const { status } = await by.api.get<InstanceBody>(`/v1/instances/${id}`);
  if (status === 'creating') await destroy(id, by);
  return status === 'creating';
}

async function destroy(id: string, by = renter): Promise<void> {
  await by.api.delete(`/v1/instances/${id}`);
  agent.done(
    await eventually('the destroy', () => agent.held.find((c) => c.instanceId === id && c.desired === 'absent')),
  );
  await statusIs(by.api, id, 'destroyed');
}

function advance(ms: number): void {
  test.clock.advance(ms);
  agent.beat();
}

/** Time passes; the host, which is silent meanwhile, is heard again. */
async function pass(ms: number): Promise<void> {
  advance(ms);
  await eventually('the host', async () => {
    agent.beat();
    return (await renter.api.get<{ state: string }>(`/v1/offers/${offerId}`)).state === 'available';
  });
}

it('a deploy of an image that was too slow is accepted and ends at once, at no cost', async () => {
  expect(await failSlowly('slow:1')).toMatchObject({
    error_code: 'provision_failed',
    error_message: 'the image cannot be pulled: less than 1 MiB per second',
  });
  const failedAt = test.clock.now();
  advance(MINUTE_MS);
  const accepted = await deploy('slow:2');
  expect(accepted).toMatchObject({ status: 'creating', allowed_actions: ['destroy'], error_code: null });
  const instance = await renter.api.get<InstanceBody>(`/v1/instances/${accepted.id}`);
  const until = new Date(failedAt + 10 * MINUTE_MS).toISOString();
  expect(instance).toMatchObject({
    status: 'error',
    error_code: 'provision_failed',
    error_message: `images from docker.io/library/slow were too slow to pull on this machine the last time; this organization can deploy them again there from ${until}, and on other machines now`,
    started_at: null,
    spend_micro: 0,
    allowed_actions: ['destroy'],
  });
  test.advance(1_000);
  expect(agent.received.filter(({ instanceId }) => instanceId === accepted.id)).toEqual([]);
  const claims = query.selectFrom('gpu_claims').select('gpu_uuid').where('machine_id', '=', agent.hostId);
  expect(test.core.platform.store.transact((tx) => tx.all(claims))).toEqual([]);
  await destroy(accepted.id);
});

it('an idempotency key that is used again shows how the deploy has ended', async () => {
  await failSlowly('slow:1');
  const body = { offer_id: offerId, template_id: await test.template({ image: 'slow:1' }), disk_gb: 10 };
  const send = () => renter.api.request<InstanceBody>('POST', '/v1/instances', body, { 'Idempotency-Key': 'k' });
  const first = await send();
  expect(first).toMatchObject({ status: 201, body: { status: 'creating' } });
  expect(await send()).toMatchObject({ status: 201, body: { id: first.body.id, status: 'error' } });
});

it('the back-off is of one organization and one image, and doubles from ten minutes to a day', async () => {
  await failSlowly('slow:1');
  expect(await isTried('slow:1')).toBe(false);
  expect(await isTried('other:1')).toBe(true);
  expect(await isTried('slow:1', await test.renter())).toBe(true);
  for (const minutes of [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]) {
    await pass(minutes * MINUTE_MS - 1);
    await test.signInOperator();
    expect(await isTried('slow:1')).toBe(false);
    await pass(1);
    await failSlowly('slow:1');
  }
});

it('it is forgotten once the image has come, and a day after it may be tried again', async () => {
  await failSlowly('slow:1');
  await pass(10 * MINUTE_MS);
  const { id } = await deploy('slow:2');
  agent.done(await eventually('the command', () => agent.held.find(({ instanceId }) => instanceId === id)));
  await statusIs(renter.api, id, 'running');
  await failSlowly('slow:1');
  await pass(10 * MINUTE_MS);
  expect(await isTried('slow:1')).toBe(true);
  test.advance(DAY_MS - MINUTE_MS);
  expect(heldBack()).toEqual(['docker.io/library/slow']);
  test.advance(2 * MINUTE_MS);
  expect(heldBack()).toEqual([]);
});

it('deploys that were under way together count as one failure', async () => {
  const deployed = [await deploy('slow:1'), await deploy('slow:1')];
  for (const instance of deployed) {
    advance(1_000);
    agent.fail(await commandFor(instance), 'IMAGE_TOO_SLOW', 'slow');
    await statusIs(renter.api, instance.id, 'error');
  }
  await pass(10 * MINUTE_MS);
  expect(await isTried('slow:1')).toBe(true);
});

it('one machine holds an organization back on itself alone, and a second one on all', async () => {
  const [first, firstOffer] = [agent, offerId];
  await failSlowly('ghcr.io/team/app:1');
  const others = [];
  for (let made = 0; made < 2; made++) {
    const host = await test.host({ gpus: 2, automatic: false });
    others.push({ host, offer: await test.offer(host) });
  }
  const [second, third] = others;
  const on = (host = first, offer = firstOffer) => void ([agent, offerId] = [host, offer]);
  on(second?.host, second?.offer);
  expect(await isTried('ghcr.io/team/other:2')).toBe(true);
  advance(MINUTE_MS);
  await failSlowly('ghcr.io/team/app:1');
  on(third?.host, third?.offer);
  await pass(0);
  const { id } = await deploy('ghcr.io/team/app:1');
  const until = new Date(test.clock.now() + 9 * MINUTE_MS).toISOString();
  const why = `images from ghcr.io were too slow to pull on several machines the last time; this organization can deploy them again from ${until}`;
  expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({ status: 'error', error_message: why });
  await destroy(id);
  // Once the first machine may be tried again, only the second holds back on itself.
  await pass(9 * MINUTE_MS);
  expect(await isTried('ghcr.io/team/app:1')).toBe(true);
  on(second?.host, second?.offer);
  await pass(0);
  expect(await isTried('ghcr.io/team/app:1')).toBe(false);
});

it('a failure that was not for being slow holds back nothing', async () => {
  const { id } = await deploy('missing:1');
  agent.fail(await commandFor({ id } as InstanceBody), 'IMAGE_UNAVAILABLE', 'not found');
  await statusIs(renter.api, id, 'error');
  expect(await isTried('missing:1')).toBe(true);
});

it('a clock that was set back holds back nothing for longer', async () => {
  await failSlowly('slow:1');
  test.clock.step(-DAY_MS);
  await test.operator.post('/v1/operator/clock/confirm');
  await pass(0);
  expect(await isTried('slow:1')).toBe(true);
  test.clock.step(DAY_MS);
  await test.operator.post('/v1/operator/clock/confirm');
});

it('an organization has a hundred of them at most', async () => {
  const values = Array.from({ length: 100 }, (_, index) => ({
    organization_id: renter.organizationId,
    source: `docker.io/library/image-${index}`,
    failures: 1,
    machine_id: agent.hostId,
    failed_at: test.clock.now(),
    retry_at: test.clock.now() + 1 + index,
  }));
  test.core.platform.store.transact((tx) => tx.run(query.insertInto('slow_images').values(values)));
  await failSlowly('slow:1');
  const left = heldBack();
  expect(left).toHaveLength(100);
  expect(left).toContain('docker.io/library/slow');
  expect(left).not.toContain('docker.io/library/image-0');
});

it('those that are forgotten are found by an index', () => {
  const database = new BetterSqlite3(test.databaseFile, { readonly: true });
  const plan = database
    .prepare('EXPLAIN QUERY PLAN SELECT source FROM slow_images WHERE retry_at <= 1 ORDER BY retry_at LIMIT 5')
    .all();
  expect(JSON.stringify(plan)).toContain('slow_images_by_retry');
  database.close();
});
