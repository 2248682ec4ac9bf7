import BetterSqlite3 from 'better-sqlite3';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hashToken } from '../../control-plane/services/secrets/tokens.js';
import { makeUnsubscribeToken } from '../../control-plane/services/mail/unsubscribe.js';
import { readTemplateSnapshot } from '../../control-plane/services/catalogue/stored-template.js';
import { decryptWorkload, encryptWorkload } from '../../control-plane/services/instances/workload.js';
import { query, sql } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { ROUTES, type ObjectKind } from '../contract/routes.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { FakeAgent, type FakeHostState } from '../harness/fake-agent.js';
import { RELEASES, leftBy } from '../harness/releases.js';

/** What a release has left: made with its own code, its hosts as they stood. */
interface World {
  now: number;
  secretKey: string;
  renter: { email: string; password: string };
  apiKey: { secret: string };
  hosts: FakeHostState[];
  instances: Record<
    'running' | 'machine' | 'plain' | 'stopped' | 'destroyed' | 'creating' | 'failed' | 'strange',
    string
  >;
  templates: { system: string; own: string; vm: string };
  offers: { offerId: string };
}

let test: TestControlPlane;
let world: World;
let renter: TestControlPlane['api'];
let hosts: FakeAgent[];

async function open(release: string): Promise<void> {
  world = JSON.parse(readFileSync(leftBy(release, 'world.json'), 'utf8')) as World;
  const left = { database: leftBy(release, 'store.db'), secretKey: Buffer.from(world.secretKey, 'hex'), at: world.now };
  test = await TestControlPlane.start({ left });
  const { email, password } = world.renter;
  renter = test.api.as((await test.api.post<{ token: string }>('/v1/auth/sign-in', { email, password })).token);
  hosts = [];
}

async function connectHosts(): Promise<void> {
  hosts = world.hosts.map((state) => FakeAgent.resume(test.grpcAddress, state));
  for (const host of hosts) await host.connect();
}

const webhookEndpoint = async () => {
  const made = { url: 'https://hooks.example' };
  return (await renter.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', made)).endpoint.id;
};
const read = (id: string) => renter.get<InstanceBody>(`/v1/instances/${id}`);

describe.each(RELEASES)('A store that release %s has left', (release) => {
  beforeEach(() => open(release));
  afterEach(async () => {
    for (const host of hosts) host.close();
    await test.stop();
  });

  it('keeps every timeline as it was, numbered without a gap', () => {
    const before = new BetterSqlite3(leftBy(release, 'store.db'), { readonly: true });
    const wasOwn = before.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'instance_events'").get() !== undefined;
    const rows = wasOwn ? 'instance_events' : 'events WHERE instance_id IS NOT NULL';
    const events = before.prepare(`SELECT instance_id, at, kind, message FROM ${rows}`).all();
    before.close();
    expect(events.length).toBeGreaterThan(10);
    const after = test.core.platform.store.transact((tx) =>
      tx.all(query.selectFrom('events').selectAll().orderBy('number')),
    );
    const ofInstances = after.filter(({ instance_id }) => instance_id !== null);
    const told = ofInstances.map(({ instance_id, at, kind, message }) => ({ instance_id, at, kind, message }));
    const byInstance = (one: unknown, other: unknown) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);
    expect(told.sort(byInstance)).toEqual(events.sort(byInstance));
    for (const stream of new Set(after.map((event) => event.stream))) {
      const numbers = after.filter((event) => event.stream === stream).map(({ number }) => number);
      expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    }
  });

  it('adds up its ledger in every group of charges', async () => {
    interface Sum {
      key: string | null;
      gpu_micro: number;
      disk_micro: number;
    }
    const before = new BetterSqlite3(leftBy(release, 'store.db'), { readonly: true });
    const charged = before
      .prepare<[], { instance_id: string; meter: string; micro: number; label: string | null; deployed_by: string }>(
        `SELECT instance_id, meter, -amount_micro AS micro, label, deployed_by FROM transactions
          JOIN instances ON instances.id = instance_id WHERE kind = 'charge'`,
      )
      .all();
    before.close();
    expect(charged.length).toBeGreaterThan(0);
    const due = (keyOf: (row: (typeof charged)[number]) => string | null) => {
      const sums = new Map<string | null, { gpu_micro: number; disk_micro: number }>();
      for (const row of charged) {
        const sum = sums.get(keyOf(row)) ?? { gpu_micro: 0, disk_micro: 0 };
        sum[row.meter === 'gpu' ? 'gpu_micro' : 'disk_micro'] += row.micro;
        sums.set(keyOf(row), sum);
      }
      return sums;
    };
    for (const [by, keyOf] of [
      ['instance', (row) => row.instance_id],
      ['label', (row) => row.label],
      ['member', (row) => row.deployed_by],
    ] as [string, Parameters<typeof due>[0]][]) {
      const { items } = await renter.get<{ items: Sum[] }>(`/v1/billing/summary?by=${by}`);
      const told = items.map(({ key, gpu_micro, disk_micro }) => [key, { gpu_micro, disk_micro }] as const);
      expect(new Map(told), by).toEqual(due(keyOf));
    }
    const all = [...due(() => null).values()];
    for (const by of ['template', 'api_key', 'day']) {
      const { items } = await renter.get<{ items: Sum[] }>(`/v1/billing/summary?by=${by}`);
      const sum = (field: 'gpu_micro' | 'disk_micro') => items.reduce((total, item) => total + item[field], 0);
      expect([{ gpu_micro: sum('gpu_micro'), disk_micro: sum('disk_micro') }], by).toEqual(all);
    }
  });

  it('has no limits, caps and schedules', async () => {
    const ids = Object.entries(world.instances).flatMap(([name, id]) => (name === 'strange' ? [] : [id]));
    expect(ids.length).toBeGreaterThan(3);
    const none = { stop_at: null, max_charge_micro: null, idle_stop_minutes: null, on_limit: null };
    for (const id of ids) {
      expect(await renter.get(`/v1/instances/${id}`)).toMatchObject(none);
      expect(await renter.get(`/v1/instances/${id}/schedule`)).toMatchObject({
        time_zone: null,
        entries: [],
        next: null,
      });
    }
    const noCap = { burn_per_hour_micro: null, day_micro: null, month_micro: null, set_at: null };
    expect(await renter.get('/v1/orgs/current/spend-caps')).toMatchObject(noCap);
  });

  it('answers every GET', async () => {
    const { instances, templates, offers } = world;
    const known = Object.entries(instances).filter(([name]) => name !== 'strange');
    const { hash_id } = await renter.get<{ hash_id: string }>(`/v1/templates/${templates.own}`);
    const ids: Partial<Record<ObjectKind, string[]>> = {
      offer: [offers.offerId],
      template: Object.values(templates),
      system_template: [templates.system],
      // The older release knows none.
      rollout: [],
      template_hash: [hash_id],
      instance: known.map(([, id]) => id),
      machine: world.hosts.map(({ hostId }) => hostId),
      webhook_endpoint: [await webhookEndpoint()],
      api_key: (await renter.get<{ items: { id: string }[] }>('/v1/api-keys')).items.map(({ id }) => id),
      organization: [(await renter.get<{ id: string }>('/v1/orgs/current')).id],
    };
    const { user } = await renter.get<{ user: { id: string } }>('/v1/me');
    ids.unsubscribe_token = [makeUnsubscribeToken(test.core.platform.encryption, user.id, ['disks'])];
    const asked: string[] = [];
    for (const { operation, object, access } of ROUTES.filter((route) => route.operation.startsWith('GET '))) {
      const path = operation.slice('GET '.length);
      const api = access === 'operator' ? test.operator : access === 'public' ? test.api : renter;
      const found = object === undefined ? ['none'] : ids[object];
      if (!found) throw new Error(`say what ${path} is asked of`);
      for (const id of found) {
        const answer = await api.request('GET', path.replace('{id}', id));
        // Logs are with a host, and payouts with a payment provider; none of them is here.
        const expected = path.endsWith('/logs') || path.includes('/payouts/') ? [200, 409, 503] : [200, 503];
        expect([path, expected.includes(answer.status), answer.status]).toEqual([path, true, answer.status]);
        asked.push(path);
      }
    }
    expect(asked.length).toBeGreaterThan(40);
    const listed = await renter.get<{ items: InstanceBody[] }>('/v1/instances?include_destroyed=true');
    expect(listed.items).toHaveLength(known.length);
  });

  it('has the same keys and members, which can do the same', async () => {
    const before = new BetterSqlite3(leftBy(release, 'store.db'), { readonly: true });
    const members = before.prepare('SELECT * FROM memberships ORDER BY organization_id, user_id').all();
    const invites = before.prepare('SELECT * FROM invites ORDER BY id').all();
    before.close();
    const { store } = test.core.platform;
    const rowsOf = (table: 'memberships' | 'invites', by: string) =>
      store.transact((tx) => tx.all(query.selectFrom(table).selectAll().orderBy(sql.raw(by))));
    expect(members.length).toBeGreaterThan(0);
    // What the release did not know yet.
    const notRefused = members.map((member) => ({ refused_at: null, ...(member as object) }));
    expect(rowsOf('memberships', 'organization_id, user_id')).toEqual(notRefused);
    const known = invites.map((invite) => ({ made_by: null, ...(invite as object) }));
    expect(rowsOf('invites', 'id')).toEqual(known);
    const key = test.api.as(world.apiKey.secret);
    const { items } = await key.get<{ items: object[] }>('/v1/api-keys');
    expect(items.length).toBeGreaterThan(0);
    for (const each of items)
      expect(each).toMatchObject({ read_only: false, allowed_addresses: null, expires_at: null });
    // It may change things, as before.
    expect((await key.request('POST', `/v1/templates/${world.templates.own}/duplicate`)).status).toBe(201);
    expect(await key.get(`/v1/instances/${world.instances.plain}`)).toEqual(await read(world.instances.plain));
    const made = { email: 'viewer@example.com', role: 'viewer' };
    expect((await renter.request('POST', '/v1/orgs/current/invites', made)).status).toBe(201);
  });

  it('has the same sessions, which can do the same', async () => {
    const before = new BetterSqlite3(leftBy(release, 'store.db'), { readonly: true });
    const columns = ['id', 'user_id', 'token_hash', 'created_at', 'expires_at'] as const;
    const sessions = before.prepare(`SELECT ${columns.join(', ')} FROM sessions ORDER BY id`).all() as { id: string }[];
    const whole = before.prepare('SELECT * FROM sessions').all() as { id: string; device?: string | null }[];
    before.close();
    const { store } = test.core.platform;
    const kept = store.transact((tx) => tx.all(query.selectFrom('sessions').select(columns).orderBy('id')));
    const ids = sessions.map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(0);
    expect(kept.filter(({ id }) => ids.includes(id))).toEqual(sessions);
    const { user } = await renter.get<{ user: { id: string } }>('/v1/me');
    const own = kept.find(({ id, user_id }) => ids.includes(id) && user_id === user.id)?.id ?? '';
    // Nobody knows the token that it had.
    const token = `ses_${'0'.repeat(64)}`;
    const known = query.updateTable('sessions').set({ token_hash: hashToken(token) });
    store.transact((tx) => tx.run(known.where('id', '=', own)));
    const session = test.api.as(token);
    expect(await session.get('/v1/me')).toEqual(await renter.get('/v1/me'));
    expect((await session.request('POST', '/v1/api-keys', { name: 'made after the upgrade' })).status).toBe(201);
    const page = { Cookie: `__Host-gpurent=${token}`, 'Sec-Fetch-Site': 'same-origin', 'X-Same-Origin': '1' };
    expect((await test.api.request('GET', '/v1/instances', undefined, page)).status).toBe(200);
    const { items } = await session.get<{ items: { id: string }[] }>('/v1/auth/sessions');
    expect(items.find(({ id }) => id === own)).toMatchObject({
      name: null,
      device: whole.find(({ id }) => id === own)?.device ?? null,
      is_current: true,
    });
    expect((await session.request('POST', '/v1/auth/sign-out')).status).toBe(204);
    expect((await session.request('GET', '/v1/me')).status).toBe(401);
  });

  it('goes on with its instances, and carries out every command', async () => {
    const { instances } = world;
    await connectHosts();
    const { running, machine, plain, stopped, creating, failed, strange } = instances;
    await statusIs(renter, creating, 'running');
    for (const id of [running, machine, plain]) expect((await read(id)).status).toBe('running');
    await renter.post(`/v1/instances/${stopped}/start`);
    await statusIs(renter, stopped, 'running');
    for (const id of [running, machine, plain, stopped]) {
      await renter.post(`/v1/instances/${id}/stop`);
      await statusIs(renter, id, 'stopped');
    }
    await renter.post(`/v1/instances/${running}/start`);
    await statusIs(renter, running, 'running');
    for (const id of [running, machine, plain, stopped, creating, failed]) {
      await renter.delete(`/v1/instances/${id}`);
      await statusIs(renter, id, 'destroyed');
    }
    const { items } = await test.operator.get<{ items: { id: string; instance_id: string }[] }>(
      '/v1/operator/quarantine',
    );
    expect(items.map(({ instance_id }) => instance_id)).toEqual([strange]);
    await test.operator.post(`/v1/operator/quarantine/${items[0]?.id}/remove`);
    expect(test.logged(50)).toEqual([]);
  });

  it('lets its renter deploy from the template of then', async () => {
    await connectHosts();
    const deployed = await renter.post<InstanceBody>('/v1/instances', {
      offer_id: world.offers.offerId,
      template_id: world.templates.own,
      disk_gb: 10,
    });
    await statusIs(renter, deployed.id, 'running');
    const command = hosts.flatMap(({ received }) => received).find(({ instanceId }) => instanceId === deployed.id);
    expect(JSON.stringify(command)).toContain('"username":"u"');
  });
});

describe('A field that is added later', () => {
  beforeEach(() => open('0.1.0'));
  afterEach(async () => {
    for (const host of hosts) host.close();
    await test.stop();
  });

  it('to a template breaks no instance that was deployed before', async () => {
    const { running } = world.instances;
    const { store } = test.core.platform;
    const of = query.selectFrom('instances').select('template_snapshot').where('id', '=', running);
    const snapshot = store.transact((tx) => tx.get(of))?.template_snapshot ?? '{}';
    const whole = readTemplateSnapshot(snapshot);
    for (const field of Object.keys(whole)) {
      const { [field]: _, ...older } = JSON.parse(snapshot) as Record<string, unknown>;
      expect(Object.keys(readTemplateSnapshot(JSON.stringify(older))).sort()).toEqual(Object.keys(whole).sort());
    }
    const bare = JSON.stringify({
      id: whole.id,
      name: whole.name,
      created_at: whole.created_at,
      env: [{ key: 'K' }],
      ports: [{ port: 1 }],
    });
    store.transact((tx) =>
      tx.run(query.updateTable('instances').set({ template_snapshot: bare }).where('id', '=', running)),
    );
    expect(await read(running)).toMatchObject({ template: { env: [{ secret: false }], ports: [{ guard: 'proxy' }] } });
    await connectHosts();
    await renter.delete(`/v1/instances/${running}`);
    await statusIs(renter, running, 'destroyed');
  });

  it('to what an instance runs breaks no start of an older one', async () => {
    const { stopped } = world.instances;
    const { store, encryption } = test.core.platform;
    const of = query.selectFrom('instances').select('workload_encrypted').where('id', '=', stopped);
    const sealed = store.transact((tx) => tx.get(of))?.workload_encrypted;
    if (!sealed) throw new Error('nothing is sealed');
    const whole = decryptWorkload(encryption, sealed);
    for (const field of Object.keys(whole) as (keyof typeof whole)[]) {
      const { [field]: _, ...older } = whole;
      const opened = decryptWorkload(encryption, encryptWorkload(encryption, older as typeof whole));
      expect(() => WorkloadSpec.encode({ ...opened, gpuUuids: [], origin: '' }).finish()).not.toThrow();
    }
    const { image, sshUser } = whole;
    const bare = encryptWorkload(encryption, { image, sshUser } as typeof whole);
    store.transact((tx) =>
      tx.run(query.updateTable('instances').set({ workload_encrypted: bare }).where('id', '=', stopped)),
    );
    await connectHosts();
    await renter.post(`/v1/instances/${stopped}/start`);
    await statusIs(renter, stopped, 'running');
  });

  it('what cannot be encoded holds up neither its machine nor the log', async () => {
    const { stopped, running } = world.instances;
    const { store, encryption } = test.core.platform;
    const broken = encryption.encrypt('instance.workload', { image: 'x', env: 7 });
    store.transact((tx) =>
      tx.run(query.updateTable('instances').set({ workload_encrypted: broken }).where('id', '=', stopped)),
    );
    await connectHosts();
    const started = renter.request('POST', `/v1/instances/${stopped}/start`);
    await eventually('the word of it', () =>
      test.logged(50).some((line) => line.includes('cannot be sent because it cannot be encoded')),
    );
    expect(hosts.every(({ connected }) => connected)).toBe(true);
    await renter.post(`/v1/instances/${running}/stop`);
    await statusIs(renter, running, 'stopped');
    test.advance(60_000);
    void started.catch(() => undefined);
  });
});
