import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { CHARGE_GROUPS } from '../../control-plane/domain/money/money.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import { World, type DeployBody } from '../contract/world.js';
import { DAYS_THAT_DIFFER, INSTANCES_THAT_DIFFER } from '../harness/charge-days.js';
import { statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { DAY_MS, HOUR_MS } from '../harness/poor.js';

interface Sum {
  key: string | null;
  name: string | null;
  gpu_micro: number;
  disk_micro: number;
  total_micro: number;
}
interface List {
  items: Sum[];
  next_cursor?: string | null;
}

const GPU = 1_000_000;
const DISK = 1_000;

let world: World;
let agent: FakeAgent;
let body: DeployBody;
let renter: Renter;
beforeAll(async () => {
  world = await World.make();
  ({ agent, body } = await world.host({ gpus: 8, diskGb: 1_000 }));
  renter = world.admin;
});
afterAll(() => world.stop());

const read = (parameters = '', api = renter.api) => api.get<List>(`/v1/billing/summary?${parameters}`);
const rowsOf = async (parameters: string, api = renter.api) =>
  (await read(parameters, api)).items.map(({ key, gpu_micro, disk_micro }) => [key, gpu_micro, disk_micro]);
const dateIn = (days: number) => new Date(world.test.clock.now() + days * DAY_MS).toISOString().slice(0, 10);
const untilMidnight = () => DAY_MS - (world.test.clock.now() % DAY_MS);

/** Time passes; what runs has run on. */
async function pass(ms: number, ...running: InstanceBody[]): Promise<void> {
  world.test.advance(ms);
  for (const { id } of running) await agent.speak(id);
  world.test.advance(0);
}

/** The host, which was silent, is heard again. */
async function heard(): Promise<void> {
  agent.beat();
  await eventually('the host', async () => {
    return (await renter.api.get<{ state: string }>(`/v1/offers/${body.offer_id}`)).state === 'available';
  });
}

async function running(fields: object, api: ApiClient): Promise<InstanceBody> {
  return world.running({ ...body, ...fields }, api);
}

async function destroyed({ id }: InstanceBody, api: ApiClient): Promise<void> {
  await api.delete(`/v1/instances/${id}`);
  await statusIs(api, id, 'destroyed');
}

const found = (text: string): unknown[] => {
  const database = new BetterSqlite3(world.test.databaseFile, { readonly: true });
  const rows = database.prepare(text).all();
  database.close();
  return rows;
};

describe('what use has cost', () => {
  let mine: InstanceBody;
  let scripted: InstanceBody;
  let other: InstanceBody;
  let otherTemplate: string;
  let key: Awaited<ReturnType<World['key']>>;
  let first: string;

  beforeAll(async () => {
    renter = await world.test.renter();
    const { api } = renter;
    world.test.clock.advance(untilMidnight());
    await heard();
    first = dateIn(0);
    otherTemplate = await world.test.template({ name: 'Other' });
    const made = await api.post<Pick<typeof key, 'key' | 'secret'>>('/v1/api-keys', { name: '=ci', kind: 'team' });
    key = { ...made, api: world.test.api.as(made.secret) };
    mine = await running({ label: '=SUM(A1)' }, api);
    scripted = await running({ template_id: otherTemplate }, key.api);
    await pass(HOUR_MS, mine, scripted);
    await api.post(`/v1/instances/${mine.id}/stop`);
    await statusIs(api, mine.id, 'stopped');
    await pass(DAY_MS, scripted);
    other = await running({ label: 'batch' }, api);
    await pass(2 * HOUR_MS, scripted, other);
    await destroyed(other, api);
    await destroyed(scripted, api);
  });

  const DAY_ONE = [24 * GPU + GPU, 23 * DISK];
  const DAY_TWO = [3 * GPU + 2 * GPU, 3 * DISK];

  it('is told by instance: each with its label, also those that are gone', async () => {
    expect((await read('by=instance')).items).toEqual([
      ...[mine, scripted]
        .sort((one, next) => (one.id < next.id ? -1 : 1))
        .map(({ id }) =>
          id === mine.id
            ? { key: id, name: '=SUM(A1)', gpu_micro: GPU, disk_micro: 26 * DISK, total_micro: GPU + 26 * DISK }
            : { key: id, name: null, gpu_micro: 27 * GPU, disk_micro: 0, total_micro: 27 * GPU },
        ),
      { key: other.id, name: 'batch', gpu_micro: 2 * GPU, disk_micro: 0, total_micro: 2 * GPU },
    ]);
    for (const { key: id, total_micro } of (await read()).items)
      expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).spend_micro).toBe(total_micro);
  });

  it('is told by template, API key, member and label', async () => {
    const byName = (parameters: string) =>
      read(parameters).then(({ items }) => new Map(items.map((item) => [item.name, [item.key, item.total_micro]])));
    expect(await byName('by=template')).toEqual(
      new Map([
        ['Test', [world.templateId, 3 * GPU + 26 * DISK]],
        ['Other', [otherTemplate, 27 * GPU]],
      ]),
    );
    const keyName = `=ci (${key.key.prefix}…)`;
    expect(await byName('by=api_key')).toEqual(
      new Map([
        [null, [null, 3 * GPU + 26 * DISK]],
        [keyName, [key.key.id, 27 * GPU]],
      ]),
    );
    expect(await byName('by=member')).toEqual(
      new Map([
        [renter.email, [renter.email, 3 * GPU + 26 * DISK]],
        [keyName, [keyName, 27 * GPU]],
      ]),
    );
    expect(await byName('by=label')).toEqual(
      new Map([
        [null, [null, 27 * GPU]],
        ['=SUM(A1)', ['=SUM(A1)', GPU + 26 * DISK]],
        ['batch', ['batch', 2 * GPU]],
      ]),
    );
  });

  it('is told by day of use, and a range has its first and its last day', async () => {
    const second = dateIn(0);
    expect(await rowsOf('by=day')).toEqual([
      [first, ...DAY_ONE],
      [second, ...DAY_TWO],
    ]);
    expect(await rowsOf(`by=day&from=${first}&to=${first}`)).toEqual([[first, ...DAY_ONE]]);
    expect(await rowsOf(`from=${second}`)).toHaveLength(3);
    expect(await rowsOf(`to=${first}`)).toHaveLength(2);
    expect(await rowsOf(`by=label&from=${second}&to=${second}`)).toEqual([
      [null, 3 * GPU, 0],
      ['=SUM(A1)', 0, 3 * DISK],
      ['batch', 2 * GPU, 0],
    ]);
    expect(await rowsOf(`from=${dateIn(1)}&to=${dateIn(9)}`)).toEqual([]);
    expect(await rowsOf(`from=${dateIn(-9)}&to=${dateIn(-2)}`)).toEqual([]);
  });

  it.each([...CHARGE_GROUPS, 'day'])('adds up by %s to what the ledger charges', async (by) => {
    const { items } = await read(`by=${by}`);
    const ledger = await renter.api.get<{ items: { amount_micro: number; meter: string }[] }>(
      '/v1/billing/transactions?kind=charge',
    );
    for (const meter of ['gpu', 'disk'] as const) {
      const charged = ledger.items.filter((row) => row.meter === meter).map(({ amount_micro }) => -amount_micro);
      const told = items.map((item) => item[`${meter}_micro`]);
      expect(told.reduce((sum, micro) => sum + micro, 0)).toBe(charged.reduce((sum, micro) => sum + micro, 0));
    }
    expect(items.every((item) => item.total_micro === item.gpu_micro + item.disk_micro)).toBe(true);
  });

  it.each([...CHARGE_GROUPS, 'day'])('comes by %s in pages that add up to the whole', async (by) => {
    const { items, next_cursor } = await read(`by=${by}`);
    expect(next_cursor).toBeUndefined();
    const pages: Sum[] = [];
    for (let cursor: string | null | undefined = ''; cursor !== null;) {
      const page: List = await read(`by=${by}&limit=1${cursor ? `&cursor=${cursor}` : ''}`);
      expect(page.items.length).toBeLessThanOrEqual(1);
      pages.push(...page.items);
      cursor = page.next_cursor;
      expect(cursor).not.toBeUndefined();
    }
    expect(pages).toEqual(items);
  });

  it('comes as a CSV file in which nothing is a formula', async () => {
    const csv = (parameters: string) => renter.api.get<string>(`/v1/billing/summary.csv?${parameters}`);
    const [header, ...lines] = (await csv('by=label')).trimEnd().split('\n');
    expect(header).toBe('key,name,gpu_micro,disk_micro,total_micro');
    expect(lines).toHaveLength(3);
    expect(lines.find((line) => line.includes('SUM'))).toBe(
      `'=SUM(A1),'=SUM(A1),${GPU},${26 * DISK},${GPU + 26 * DISK}`,
    );
    expect((await csv('by=api_key')).includes(`,'=ci (${key.key.prefix}…),`)).toBe(true);
    expect((await csv('by=instance&limit=2')).trimEnd().split('\n')).toHaveLength(3);
  });

  it('is nobody else’s', async () => {
    expect((await read('', world.stranger.api)).items).toEqual([]);
    const { next_cursor } = await read('limit=1');
    expect((await read(`cursor=${next_cursor}`, world.stranger.api)).items).toEqual([]);
  });

  it('is called as it was: neither what its owner has made of a template since, nor a key that is revoked', async () => {
    const shared = { name: 'Shared', image: 'i:1', visibility: 'public' };
    const { id: template_id } = await world.stranger.api.post<{ id: string }>('/v1/templates', shared);
    const instance = await running({ template_id }, renter.api);
    await pass(HOUR_MS, instance);
    await world.stranger.api.request('PATCH', `/v1/templates/${template_id}`, {
      name: 'A secret',
      visibility: 'organization',
    });
    await renter.api.delete(`/v1/api-keys/${key.key.id}`);
    const names = async (by: string) => (await read(`by=${by}`)).items.map(({ name }) => name);
    expect((await names('template')).sort()).toEqual(['Other', 'Shared', 'Test']);
    expect(await names('api_key')).toContain(`=ci (${key.key.prefix}…)`);
    await destroyed(instance, renter.api);
  });

  it('counts use that a host reports late for the day of the use', async () => {
    const instance = await running({ label: 'late' }, renter.api);
    await pass(untilMidnight() - HOUR_MS, instance);
    await pass(2 * HOUR_MS);
    const [today] = await rowsOf(`by=label&from=${dateIn(0)}`).then((rows) => rows.filter(([name]) => name === 'late'));
    expect(today).toBeUndefined();
    const [before] = (await rowsOf(`by=label&to=${dateIn(-1)}`)).filter(([name]) => name === 'late');
    await pass(0, instance);
    const [after] = (await rowsOf(`by=label&to=${dateIn(-1)}`)).filter(([name]) => name === 'late');
    expect((after?.[1] as number) - (before?.[1] as number)).toBe(GPU);
    expect((await rowsOf(`by=label&from=${dateIn(0)}`)).find(([name]) => name === 'late')).toEqual(['late', GPU, 0]);
    await destroyed(instance, renter.api);
  });

  it('is in every group what the days of the organization have cost', () => {
    expect(found('SELECT count(*) AS days FROM charge_days')).not.toEqual([{ days: 0 }]);
    expect(found(DAYS_THAT_DIFFER)).toEqual([]);
    expect(found(INSTANCES_THAT_DIFFER)).toEqual([]);
  });
});

describe('a range that nobody can ask for', () => {
  const today = () => dateIn(0);
  it.each([
    ['a day that does not exist', () => 'from=2026-02-30', 'from'],
    ['a time', () => `to=${new Date(0).toISOString()}`, 'to'],
    ['one that is reversed', () => `from=${today()}&to=${dateIn(-1)}`, 'from'],
    ['one that begins after today', () => `from=${dateIn(1)}`, 'from'],
    ['one of 367 days', () => `from=${dateIn(-366)}&to=${today()}`, 'from'],
    ['by what is not charged', () => 'by=color', 'by'],
  ])('is refused: %s', async (_, parameters, path) => {
    for (const route of ['summary', 'summary.csv']) {
      const refused = await world.refused(renter.api, 'GET', `/v1/billing/${route}?${parameters()}`);
      expect(refused).toMatchObject({ status: 422, code: 'VALIDATION_FAILED', details: [{ path }] });
    }
  });

  it('but one of 366 days can be', async () => {
    expect((await read(`from=${dateIn(-365)}&to=${today()}`)).items.length).toBeGreaterThan(2);
  });

  it('and a cursor goes on only with the list that it is of', async () => {
    const { next_cursor } = await read(`limit=1&from=${dateIn(-30)}&to=${today()}`);
    expect((await read(`limit=500&cursor=${next_cursor}`)).items.length).toBeGreaterThan(1);
    const of = (...key: unknown[]) => Buffer.from(JSON.stringify(key)).toString('base64url');
    for (const parameters of [
      `by=label&cursor=${next_cursor}`,
      `from=${dateIn(-29)}&cursor=${next_cursor}`,
      `to=${dateIn(-1)}&cursor=${next_cursor}`,
      `cursor=${of('instance', 0, 366, 0, 'x')}`,
      `cursor=${of('instance', 0, 9, -1, 'x')}`,
      `cursor=${of('instance', 0, 9, 10, 'x')}`,
      `cursor=${of('instance', 0, 1, 0.5, 'x')}`,
      `cursor=${of('instance', 0, 1, 0, 7)}`,
      `cursor=${of('instance', '0', 1, 0, 'x')}`,
    ])
      expect(await renter.api.request('GET', `/v1/billing/summary?${parameters}`), parameters).toMatchObject({
        status: 422,
        body: { details: [{ path: 'cursor' }] },
      });
  });
});

it('a list keeps its range over midnight, and each of its items comes once', async () => {
  const owner = await world.test.renter();
  const instances = [await running({}, owner.api), await running({}, owner.api), await running({}, owner.api)];
  await pass(HOUR_MS, ...instances);
  const page = await read('limit=2', owner.api);
  const day = dateIn(0);
  await pass(untilMidnight() + HOUR_MS, ...instances);
  const rest = await read(`limit=2&cursor=${page.next_cursor}`, owner.api);
  expect(rest.next_cursor).toBeNull();
  // Nothing of the day that has begun since.
  expect(rest.items).toEqual((await read(`to=${day}`, owner.api)).items.slice(2));
  const keys = [...page.items, ...rest.items].map(({ key }) => key);
  expect(keys).toEqual(instances.map(({ id }) => id).sort());
  for (const instance of instances) await destroyed(instance, owner.api);
});

it('every charge of 25 instances that share a template is counted in each group', async () => {
  // The settlement writes each shared sum once: nothing may be lost in adding them up.
  const owner = await world.test.renter(1_000_000_000);
  const crowd = await world.host({ gpus: 25, diskGb: 1_000 });
  const instances = await Promise.all(
    Array.from({ length: 25 }, (_, index) => world.running({ ...crowd.body, label: `${index % 3}` }, owner.api)),
  );
  world.test.advance(HOUR_MS);
  for (const { id } of instances) await crowd.agent.speak(id);
  world.test.advance(0);
  expect(await rowsOf('by=template', owner.api)).toEqual([[world.templateId, 25 * GPU, 0]]);
  expect(await rowsOf('by=label', owner.api)).toEqual([
    ['0', 9 * GPU, 0],
    ['1', 8 * GPU, 0],
    ['2', 8 * GPU, 0],
  ]);
  const machines = `SELECT gpu_micro FROM machine_days WHERE machine_id = '${crowd.agent.hostId}'`;
  expect(found(machines)).toEqual([{ gpu_micro: 25 * GPU }]);
  const days = statement<{ gpu_micro: number }>(
    sql`SELECT gpu_micro FROM organization_days WHERE organization_id = ${owner.organizationId}`,
  );
  expect(world.test.core.platform.store.transact((tx) => tx.all(days))).toEqual([{ gpu_micro: 25 * GPU }]);
});
