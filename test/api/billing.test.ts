import BetterSqlite3 from 'better-sqlite3';
import type { Compilable } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { query } from '../../control-plane/store/sql.js';
import {
  LEDGER_ORDER,
  daysOf,
  transactionsOf,
  type TransactionRequest,
} from '../../control-plane/services/billing/reports/statements.js';
import { restOf } from '../../control-plane/services/system/pages.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { DISK_MICRO, GPU_MICRO, makePoor, type Poor } from '../harness/poor.js';

interface Transaction {
  id: string;
  kind: string;
  amount_micro: number;
  instance_id: string | null;
}

let test: TestControlPlane;
let renter: Renter;
let instanceId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter(50_000_000);
  const agent = await test.host();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  instanceId = id;
  for (let ago = 0; ago < 5; ago++) charge(ago * DAY_MS, 'gpu', 1_000 + ago);
  charge(2 * DAY_MS, 'disk', 7);
  charge(2 * DAY_MS + HOUR_MS, 'gpu', 10);
});
afterAll(() => test.stop());

/** A row as a settlement books it. */
function charge(ago: number, meter: 'gpu' | 'disk', micro: number): void {
  test.core.platform.store.transact((tx) => {
    const hour = Math.floor((tx.now - ago) / HOUR_MS) * HOUR_MS;
    const booked = {
      id: randomUUID(),
      organization_id: renter.organizationId,
      kind: 'charge' as const,
      created_at: hour,
    };
    const what = { instance_id: instanceId, meter, hour, amount_micro: -micro, reason: null, author_id: null };
    tx.run(query.insertInto('transactions').values({ ...booked, ...what }));
    const nothing = { gpu_micro: 0, disk_micro: 0 };
    const day = { organization_id: renter.organizationId, day: Math.floor(hour / DAY_MS), ...nothing };
    tx.run(
      query
        .insertInto('organization_days')
        .values(day)
        .onConflict((already) => already.doNothing()),
    );
    const column = `${meter}_micro` as const;
    const its = query.updateTable('organization_days').set((eb) => ({ [column]: eb(column, '+', micro) }));
    tx.run(its.where('organization_id', '=', day.organization_id).where('day', '=', day.day));
  });
}

const list = (parameters = '', api = renter.api) =>
  api.get<{ items: Transaction[]; next_cursor?: string | null }>(`/v1/billing/transactions${parameters}`);

describe('the CSV file of transactions', () => {
  it('holds every row, with what a spreadsheet would take for a formula made harmless', async () => {
    const reason = '=HYPERLINK("http://evil.example")';
    const { organizationId, api } = await test.renter(0);
    await test.operator.post(`/v1/operator/organizations/${organizationId}/credits`, { amount_micro: 1_000, reason });
    const read = async (client: typeof api) => {
      const headers = { Authorization: `Bearer ${client.token}` };
      const response = await fetch(`${client.baseUrl}/v1/billing/transactions.csv`, { headers });
      expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
      return (await response.text()).trimEnd().split('\n');
    };
    const [header, row, ...none] = await read(api);
    expect(header).toBe('id,created_at,kind,amount_micro,instance_id,meter,reason');
    expect(row).toMatch(/^[0-9a-f-]{36},2026-[^,]*Z,credit,1000,,,"'=HYPERLINK/);
    expect(none).toEqual([]);
    expect(await read(renter.api)).toHaveLength(1 + 8);
  });
});

describe('the list of transactions', () => {
  it('is whole without a limit, newest first, and the organization’s own', async () => {
    const { items, next_cursor } = await list();
    expect(next_cursor).toBeUndefined();
    expect(items).toHaveLength(8);
    expect(items.at(-1)).toMatchObject({ kind: 'credit', amount_micro: 50_000_000, reason: 'test', instance_id: null });
    expect((await list('', (await test.renter(0)).api)).items).toEqual([]);
  });

  it('can be filtered by kind and instance', async () => {
    expect((await list('?kind=credit')).items).toHaveLength(1);
    const charges = (await list(`?instance_id=${instanceId}&kind=charge`)).items;
    expect(charges.reduce((sum, { amount_micro }) => sum + amount_micro, 0)).toBe(-5_027);
    expect((await list(`?instance_id=${randomUUID()}`)).items).toEqual([]);
  });

  it('can be read in pages that add up to the whole', async () => {
    const read: string[] = [];
    let page = await list('?limit=3');
    for (let count = 0; count < 10; count++) {
      read.push(...page.items.map(({ id }) => id));
      if (page.next_cursor === null || page.next_cursor === undefined) break;
      page = await list(`?limit=3&cursor=${page.next_cursor}`);
    }
    expect(page.next_cursor).toBeNull();
    expect(page.items).toHaveLength(2);
    expect(read).toEqual((await list()).items.map(({ id }) => id));
  });

  it.each(['limit=0', 'limit=501', 'limit=x', 'cursor=-1', 'kind=gift', 'instance_id=x'])(
    'refuses %s',
    async (wrong) => {
      const answer = await renter.api.request('GET', `/v1/billing/transactions?${wrong}`);
      expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    },
  );
});

it('what was spent on each day has no gaps, and tells GPUs from disk', async () => {
  const { items } = await renter.api.get<{ items: { date: string; gpu_micro: number; disk_micro: number }[] }>(
    '/v1/billing/spend-daily?days=4',
  );
  const today = Math.floor(test.clock.now() / DAY_MS) * DAY_MS;
  const dates = [3, 2, 1, 0].map((ago) => new Date(today - ago * DAY_MS).toISOString().slice(0, 10));
  expect(items.map(({ date }) => date)).toEqual(dates);
  expect(items.reduce((sum, { gpu_micro }) => sum + gpu_micro, 0)).toBe(1_000 + 1_001 + 1_002 + 1_003 + 10);
  expect(items.reduce((sum, { disk_micro }) => sum + disk_micro, 0)).toBe(7);
  const month = await renter.api.get<{ items: unknown[] }>('/v1/billing/spend-daily');
  expect(month.items).toHaveLength(30);
});

describe('what a day has cost', () => {
  interface Day {
    date: string;
    gpu_micro: number;
    disk_micro: number;
  }
  const spentOn = async (poor: Poor, days: number) =>
    (await poor.renter.api.get<{ items: Day[] }>(`/v1/billing/spend-daily?days=${days}`)).items.map(
      ({ gpu_micro, disk_micro }) => [gpu_micro, disk_micro],
    );
  const untilMidnight = () => DAY_MS - (test.clock.now() % DAY_MS);

  it('is told by when it was used, also of a day without a control plane, and of one that is told of late', async () => {
    test.clock.advance(untilMidnight() - HOUR_MS);
    const poor = await makePoor(test, await test.template());
    const { organizationId, api } = poor.renter;
    await test.operator.post(`/v1/operator/organizations/${organizationId}/credits`, {
      amount_micro: 100 * GPU_MICRO,
      reason: 'test',
    });
    await test.core.stop();
    test.clock.advance(HOUR_MS + DAY_MS + HOUR_MS);
    await test.boot();
    test.advance(0);
    await poor.agent.connect();
    await poor.pass(0);
    const until = [
      [GPU_MICRO, 0],
      [24 * GPU_MICRO, 0],
      [GPU_MICRO, 0],
    ];
    expect(await spentOn(poor, 3)).toEqual(until);
    // A host that is silent over midnight adds to the day before once it speaks again.
    poor.agent.disconnect();
    await poor.pass(DAY_MS);
    expect(await spentOn(poor, 4)).toEqual([...until, [0, 0]]);
    await poor.agent.connect();
    await poor.pass(0);
    await api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(api, poor.id, 'stopped');
    await poor.pass(DAY_MS);
    const all = [...until.slice(0, 2), [24 * GPU_MICRO, 0], [GPU_MICRO, 23 * DISK_MICRO], [0, DISK_MICRO]];
    expect(await spentOn(poor, 5)).toEqual(all);
    const charged = all.flat().reduce((sum, micro) => sum + micro, 0);
    expect((await poor.read()).spend_micro).toBe(charged);
  });

  it('and the ledger are read by indexes, so that neither takes longer as it grows', () => {
    const database = new BetterSqlite3(test.databaseFile, { readonly: true });
    const planOf = (rows: Compilable) => {
      const { sql, parameters } = rows.compile();
      const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
      return plan.map(({ detail }) => detail).join('; ');
    };
    const rows = (request: TransactionRequest) =>
      planOf(restOf(transactionsOf('o', request), request, LEDGER_ORDER.by));
    const searched = 'SEARCH transactions USING INDEX';
    expect(rows({})).toBe(`${searched} transactions_by_organization (organization_id=?)`);
    expect(rows({ cursor: Buffer.from('[9]').toString('base64url') })).toBe(
      `${searched} transactions_by_organization (organization_id=? AND rowid<?)`,
    );
    expect(rows({ kind: 'credit' })).toBe(`${searched} transactions_by_kind (organization_id=? AND kind=?)`);
    expect(rows({ instance_id: 'i' })).toContain('instance_id=?');
    expect(rows({ instance_id: 'i' })).not.toContain('TEMP');
    expect(planOf(daysOf('o', 1))).toContain(
      'SEARCH organization_days USING PRIMARY KEY (organization_id=? AND day>?)',
    );
    database.close();
  });
});

it('nobody can pay here unless the operator has set it up', async () => {
  const before = test.dump();
  const checkout = await renter.api.request('POST', '/v1/billing/checkout-session', { amount_micro: 10_000_000 });
  expect(checkout).toMatchObject({ status: 409, body: { code: 'CHECKOUT_UNAVAILABLE' } });
  expect(test.dump()).toEqual(before);
});
