import { afterAll, beforeAll, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { KEPT_MS, KEYS_A_RUN } from '../../control-plane/services/billing/caps/ended-keys.js';
import { query, rowById } from '../../control-plane/store/sql.js';
import { World } from '../contract/world.js';

const CAPS = { burn_per_hour_micro: null, day_micro: 1_000_000_000, month_micro: null };

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const store = () => world.test.core.platform.store;
const isKept = (id: string) => store().transact((tx) => tx.get(rowById('api_keys', id)) !== undefined);
const capsOf = (id: string) =>
  store().transact((tx) => tx.get(query.selectFrom('spend_caps').selectAll().where('owner_id', '=', id)));
const revoke = (id: string) => world.admin.api.delete(`/v1/api-keys/${id}`);

it('a key that has ended is forgotten after a day, with its caps, unless it has deployed something', async () => {
  const { test } = world;
  const [unused, scripted, active] = [await world.key(), await world.key(), await world.key()];
  const expired = await world.admin.api.post<{ key: { id: string } }>('/v1/api-keys', {
    name: 'short',
    expires_at: new Date(test.clock.now() + 1_000).toISOString(),
  });
  for (const { key } of [unused, scripted]) await world.admin.api.put(`/v1/api-keys/${key.id}/spend-caps`, CAPS);
  const { body } = await world.host();
  const { id } = await world.running(body, scripted.api);
  for (const { key } of [unused, scripted]) await revoke(key.id);
  test.advance(2_000);
  test.advance(KEPT_MS - MINUTE_MS);
  expect([unused, scripted, active, expired].map(({ key }) => isKept(key.id))).toEqual([true, true, true, true]);
  expect(capsOf(unused.key.id)).toMatchObject({ kind: 'day', amount_micro: CAPS.day_micro });
  test.advance(2 * MINUTE_MS);
  expect([unused, scripted, active, expired].map(({ key }) => isKept(key.id))).toEqual([false, true, true, false]);
  expect(capsOf(unused.key.id)).toBe(undefined);
  expect(capsOf(scripted.key.id)).toMatchObject({ kind: 'day', amount_micro: CAPS.day_micro });
  expect(await world.admin.api.get(`/v1/instances/${id}`)).toMatchObject({
    deployed_via_api_key: { id: scripted.key.id, revoked: true },
  });
  expect((await unused.api.request('GET', '/v1/offers')).status).toBe(401);
  const { items } = await world.admin.api.get<{ items: { id: string }[] }>('/v1/api-keys');
  expect(items.map((key) => key.id)).toEqual([active.key.id]);
});

it('one run looks at so many keys, and goes on with the others at once', async () => {
  const { test } = world;
  const first = await world.key();
  const row = store().transact((tx) => tx.get(rowById('api_keys', first.key.id)));
  if (!row) throw new Error('there is no key');
  const many = Array.from({ length: 2 * KEYS_A_RUN + 1 }, (_, index) => `00000000-0000-4000-8000-${index}`);
  store().transact((tx) => {
    for (const id of many)
      tx.run(query.insertInto('api_keys').values({ ...row, id, secret_hash: id, revoked_at: tx.now }));
  });
  const left = () => many.filter(isKept).length;
  test.clock.advance(KEPT_MS + 1);
  const counts: number[] = [];
  for (let run = 0; run < 3; run++) {
    test.advance(1_000);
    counts.push(left());
  }
  expect(counts.at(-1)).toBe(0);
  expect(counts[0]).toBeGreaterThan(0);
  expect(isKept(first.key.id)).toBe(true);
});
