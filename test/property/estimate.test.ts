import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { query, sql, statement } from '../../control-plane/store/sql.js';
import { inSight, lastsWith } from '../../console/src/data/values/times.js';
import { eventually } from '../../scripts/eventually.js';
import { MINUTE_MS } from '../../shared/time.js';
import { NOWHERE, World, type Refused } from '../contract/world.js';
import type { Renter } from '../harness/control-plane.js';
import { statusIs } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { HOUR_MS } from '../harness/poor.js';

interface Estimate {
  gpu_per_hour_micro: number | null;
  balance_micro: number;
  required_micro: number | null;
  balance_lasts_until: string | null;
  charged_per_hour_micro: number | null;
  refusals: { code: string; message: string }[];
}

interface Organization {
  balance_micro: number;
  charged_per_hour_micro: number;
  lasts_until: string | null;
}

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const ROUNDS = Number(process.env['TEST_ROUNDS'] ?? 25);
const FAULTS = ['none', 'sold', 'withdrawn', 'removed', 'unknown', 'maintenance', 'cordoned'] as const;
const TEMPLATES = ['plain', 'vm', 'coming soon', 'arm', 'old CUDA', 'unknown', 'foreign', 'foreign registry'] as const;
const SSH_KEYS = ['none', 'own', 'foreign'] as const;

/** What is good is more frequent, so that some deploys are accepted. */
const mostly = <T>(good: T, all: readonly T[]) =>
  fc.oneof({ arbitrary: fc.constant(good), weight: 4 }, { arbitrary: fc.constantFrom(...all), weight: 1 });
/** What a cap leaves beyond five minutes of the new instance. What is not settled yet is about as much. */
const beyondEnough = fc.option(fc.oneof(fc.integer({ min: -10_000, max: 40_000 }), fc.constant(1_000_000)));
const anyWorlds = fc.record({
  offer: mostly<(typeof FAULTS)[number]>('none', FAULTS),
  template: mostly<(typeof TEMPLATES)[number]>('plain', TEMPLATES),
  sshKey: mostly<(typeof SSH_KEYS)[number]>('none', SSH_KEYS),
  priceMicro: fc.integer({ min: 0, max: 3_000_000 }),
  diskGb: fc.oneof(fc.integer({ min: 10, max: 40 }), fc.integer({ min: 10, max: 90 })),
  /** What the balance is beyond what is required without the new instance. */
  balanceMicro: fc.oneof(fc.integer({ min: 0, max: 4_000_000 }), fc.constant(20_000_000)),
  isFrozen: mostly(false, [false, true]),
  /** Instances that the organization has already: one that runs, one that is stopped. */
  running: fc.boolean(),
  stopped: fc.boolean(),
  /** Whether what runs uses the balance up before the next settlement. */
  isUsedUp: fc.nat(3).map((one) => one === 0),
  /** Whether an API key deploys. */
  byKey: fc.boolean(),
  /** What the organization or the key may spend. */
  caps: fc.option(
    fc.record({
      whose: fc.constantFrom('organization' as const, 'key' as const),
      burnMicro: fc.option(fc.integer({ min: 0, max: 5_000_000 })),
      dayMicro: beyondEnough,
      monthMicro: beyondEnough,
    }),
  ),
  limits: fc.record(
    { max_charge_micro: fc.integer({ min: 1, max: 500_000 }), stopInMs: fc.integer({ min: 1, max: 10 * MINUTE_MS }) },
    { requiredKeys: [] },
  ),
  /** For so long no settlement has come. A host that is silent for two minutes would bring one. */
  unsettledMs: fc.oneof(fc.constant(0), fc.integer({ min: MINUTE_MS, max: 2 * MINUTE_MS - 1 })),
});
type Case = typeof anyWorlds extends fc.Arbitrary<infer T> ? T : never;

/** Half of them have nothing that refuses the deploy: so many faults are seldom all absent, and only what is accepted has a cost. */
const worlds = fc.tuple(anyWorlds, fc.boolean()).map(([one, isGood]) => (isGood ? withoutFaults(one) : one));

function withoutFaults(one: Case): Case {
  const fine = { offer: 'none', template: 'plain', sshKey: 'own', isFrozen: false, isUsedUp: false } as const;
  const caps = one.caps && { ...one.caps, burnMicro: null, dayMicro: 1_000_000, monthMicro: null };
  return { ...one, ...fine, caps, diskGb: Math.min(one.diskGb, 40), balanceMicro: 20_000_000 };
}

const change = (text: string) => world.test.core.platform.store.transact((tx) => tx.run(statement(sql.raw(text))));

async function templateFor(kind: Case['template']): Promise<string> {
  const make = async (api: ApiClient, fields: object) =>
    (await api.post<{ id: string }>('/v1/templates', { name: kind, image: 'i:1', ...fields })).id;
  switch (kind) {
    case 'plain':
      return world.templateId;
    case 'vm':
      return world.test.template({ kind: 'vm' });
    case 'coming soon':
      return world.test.template({ coming_soon: true });
    case 'arm':
      return world.test.template({ arch: 'aarch64', cuda_max: '11.8' });
    case 'old CUDA':
      return world.test.template({ cuda_max: '11.8' });
    case 'unknown':
      return NOWHERE;
    case 'foreign':
      return make(world.stranger.api, {});
    case 'foreign registry':
      return make(world.stranger.api, { visibility: 'public', registry: { username: 'u', password: 'p' } });
  }
}

/** A host with one free GPU, and an offer of it in the state that is asked for. */
async function offerFor({ offer, priceMicro }: Case): Promise<{ agent: FakeAgent; offerId: string }> {
  const agent = await world.test.host({ gpus: 1, diskGb: 60, cudaVersion: '12.4' });
  const offerId = await world.test.offer(agent, 1, priceMicro);
  const machine = `/v1/operator/machines/${agent.hostId}`;
  const { operator } = world.test;
  if (offer === 'sold') await world.running({ offer_id: offerId, template_id: world.templateId, disk_gb: 30 });
  if (offer === 'withdrawn') await operator.delete(`/v1/operator/offers/${offerId}`);
  if (offer === 'removed') await operator.delete(machine);
  if (offer === 'cordoned') await operator.post(`${machine}/cordon`);
  if (offer === 'maintenance') {
    const at = (hours: number) => new Date(world.test.clock.now() + hours * HOUR_MS).toISOString();
    await operator.request('PUT', `${machine}/maintenance`, { starts_at: at(0.1), ends_at: at(9) });
  }
  return { agent, offerId: offer === 'unknown' ? NOWHERE : offerId };
}

/** A renter as the case wants it, with what it has and the host of that. `api`: the client that deploys. */
async function renterFor(
  one: Case,
): Promise<{ renter: Renter; api: ApiClient; stop: () => void; age: () => Promise<void> }> {
  const renter = await world.test.renter(one.balanceMicro + 10_000_000);
  const { agent, body } = await world.host({ gpus: 2 });
  const instances: string[] = [];
  if (one.stopped) instances.push((await world.stopped(body, renter.api)).id);
  if (one.running) instances.push((await world.running(body, renter.api)).id);
  const runs = one.running ? instances.at(-1) : undefined;
  const enough = one.balanceMicro + 1_000 * instances.length + (runs ? 1_000_000 : 0);
  world.test.setBalance(renter.organizationId, one.isUsedUp ? 10_000 : enough);
  if (one.isFrozen) change(`UPDATE organizations SET payments_frozen_at = 1 WHERE id = '${renter.organizationId}'`);
  return {
    renter,
    api: await deployerFor(renter, one),
    async age() {
      // No worker settles it before the deploy does.
      change(`UPDATE organizations SET settle_at = NULL WHERE id = '${renter.organizationId}'`);
      world.test.clock.advance(one.unsettledMs);
      agent.beat();
      if (runs !== undefined) await attested(runs);
    },
    stop: () => agent.close(),
  };
}

/** The client that deploys, once the caps are set. */
async function deployerFor({ api }: Renter, { byKey, caps, priceMicro }: Case): Promise<ApiClient> {
  const made = await api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', { name: 'deploys' });
  if (caps) {
    const path = `${caps.whose === 'key' ? `/v1/api-keys/${made.key.id}` : '/v1/orgs/current'}/spend-caps`;
    const { spent_day_micro, spent_month_micro } = await api.get<Record<string, number>>(path);
    const capOf = (spent = 0, beyond: number | null) =>
      beyond === null ? null : Math.max(spent + Math.ceil(priceMicro / 12) + beyond, 0);
    const amounts = {
      burn_per_hour_micro: caps.burnMicro,
      day_micro: capOf(spent_day_micro, caps.dayMicro),
      month_micro: capOf(spent_month_micro, caps.monthMicro),
    };
    expect(await api.request('PUT', path, amounts)).toMatchObject({ status: 200 });
  }
  return byKey ? api.as(made.secret) : api;
}

it('an estimate foretells what the deploy answers, and what it costs', async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(worlds, async (one) => {
      const { renter, api, age, stop } = await renterFor(one);
      const { agent, offerId } = await offerFor(one);
      const ssh = { none: null, own: await world.sshKey(renter), foreign: world.sshKeyId }[one.sshKey];
      const request = {
        offer_id: offerId,
        template_id: await templateFor(one.template),
        disk_gb: one.diskGb,
        ssh_key_id: ssh,
      };
      const { stopInMs, ...limits } = one.limits;
      await age();
      agent.beat();
      await heard(agent, one);
      const stop_at = stopInMs === undefined ? null : new Date(world.test.clock.now() + stopInMs).toISOString();
      const asked = { ...request, ...limits, stop_at };
      const before = await api.get<Organization>('/v1/orgs/current');
      const said = await api.post<Estimate>('/v1/instances/estimate', asked);
      const { status, body } = await api.request<InstanceBody & Refused>('POST', '/v1/instances', asked);
      const [first] = said.refusals;
      seen.set(first?.code ?? 'accepted', (seen.get(first?.code ?? 'accepted') ?? 0) + 1);
      if (first) {
        expect(status).toBeGreaterThanOrEqual(400);
        expect({ ...body, request_id: undefined }).toEqual({ ...first, request_id: undefined });
      } else {
        expect(status).toBe(201);
        marketAgrees(one, before, said);
        const isLimited = one.caps !== null || Object.keys(one.limits).length > 0;
        await costs(renter, agent, body.id, { said, isLimited });
      }
      stop();
      agent.close();
    }),
    { numRuns: ROUNDS, endOnFailure: true },
  );
  expect(seen.get('accepted')).toBeGreaterThan(0);
  expect(seen.size).toBeGreaterThan(2);
});

/** The market of the console says of the offer what the estimate says: the same charge, and as long. */
function marketAgrees({ priceMicro }: Case, before: Organization, said: Estimate): void {
  const charged = before.charged_per_hour_micro + priceMicro;
  expect(charged).toBe(said.charged_per_hour_micro);
  const market = lastsWith({ ...before, balance_micro: said.balance_micro }, priceMicro);
  if (market === undefined || inSight(market).startsWith('more')) return expect(said.balance_lasts_until).toBeNull();
  const estimated = Date.parse(said.balance_lasts_until ?? '') - world.test.clock.now();
  // There are three meters at most, and each can hold a part of a micro-dollar that is not charged yet.
  expect(Math.abs(estimated - market)).toBeLessThanOrEqual(1 + (3 * HOUR_MS) / charged);
}

/** Until a heartbeat has said that the instance has run up to now, unless a cap has ended the run. Nothing is settled by that. */
async function attested(id: string): Promise<void> {
  const its = query.selectFrom('meter_intervals').select(['attested_to', 'closed_at']).where('instance_id', '=', id);
  await eventually('the heartbeat', () =>
    world.test.core.platform.store.transact((tx) => {
      const interval = tx.get(its);
      return interval?.attested_to === tx.now || interval?.closed_at != null;
    }),
  );
}

/** Until the control plane counts the host as connected again, if it can be. */
async function heard(agent: FakeAgent, { offer }: Case): Promise<void> {
  if (offer === 'removed') return;
  const { connections } = world.test.core.platform;
  await eventually('the host', () => connections.isConnected(agent.hostId));
}

/** An hour of the instance is charged as was said, unless something ends it before, and the balance lasts as long. */
async function costs(
  { api, organizationId }: Renter,
  agent: FakeAgent,
  id: string,
  { said, isLimited }: { said: Estimate; isLimited: boolean },
): Promise<void> {
  await statusIs(api, id, 'running');
  const organization = await api.get<Organization>('/v1/orgs/current');
  expect(organization.balance_micro).toBe(said.balance_micro);
  const apart = Date.parse(organization.lasts_until ?? '') - Date.parse(said.balance_lasts_until ?? '');
  expect(organization.lasts_until === said.balance_lasts_until || Math.abs(apart) <= 1).toBe(true);
  if (isLimited) return;
  world.test.setBalance(organizationId, 1_000_000_000);
  world.test.advance(HOUR_MS);
  await agent.speak(id);
  world.test.advance(0);
  const { spend_micro } = await api.get<InstanceBody>(`/v1/instances/${id}`);
  expect(spend_micro).toBe(said.gpu_per_hour_micro);
}
