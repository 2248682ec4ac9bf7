import BetterSqlite3 from 'better-sqlite3';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { DAY_MS } from '../harness/poor.js';

interface Sum {
  key: string | null;
  gpu_micro: number;
  disk_micro: number;
}
interface List {
  items: Sum[];
  next_cursor?: string | null;
}

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const read = (parameters: string, api: Renter['api']) => api.get<List>(`/v1/billing/summary?${parameters}`);
const rowsOf = async (parameters: string, api: Renter['api']) =>
  (await read(parameters, api)).items.map(({ key, gpu_micro, disk_micro }) => [key, gpu_micro, disk_micro]);
const dateIn = (days: number) => new Date(test.clock.now() + days * DAY_MS).toISOString().slice(0, 10);

describe('the summary of an organization with a long past', () => {
  const INSTANCES = 1_300;
  const DAYS = 120;
  let owner: Renter;
  let expected: Map<string, number>;

  beforeAll(async () => {
    owner = await test.renter();
    const today = Math.floor(test.clock.now() / DAY_MS);
    // Five are used every day; each of the others on one day, ten of them on the same one.
    expected = new Map();
    test.core.platform.store.transact((tx) => {
      const add = (key: string, day: number, micro: number) => {
        expected.set(key, (expected.get(key) ?? 0) + micro);
        const row = { organization_id: owner.organizationId, key, day, instance_id: '', disk_micro: 0 };
        tx.run(query.insertInto('charge_days').values({ ...row, grouped_by: 'instance', gpu_micro: micro }));
      };
      for (let live = 0; live < 5; live++) {
        const key = randomUUID();
        for (let ago = 0; ago < DAYS; ago++) add(key, today - ago, live + ago);
      }
      for (let past = 0; past < INSTANCES; past++) add(randomUUID(), today - Math.floor(past / 10) - 1, past + 1);
    });
  });

  const range = () => `from=${dateIn(-200)}`;
  const asMap = (items: readonly Sum[]) => new Map(items.map(({ key, gpu_micro }) => [key, gpu_micro]));

  it('is whole without a limit, in pages of any size, and in the file', async () => {
    const { items } = await read(range(), owner.api);
    expect(items).toHaveLength(INSTANCES + 5);
    expect(asMap(items)).toEqual(expected);
    for (const limit of [50, 51, 500]) {
      const pages: Sum[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page: List = await read(`${range()}&limit=${limit}${cursor ? `&cursor=${cursor}` : ''}`, owner.api);
        // Only the last page is short.
        if (page.next_cursor !== null) expect(page.items).toHaveLength(limit);
        pages.push(...page.items);
        cursor = page.next_cursor ?? null;
      }
      expect(pages).toEqual(items);
    }
    const csv = await owner.api.get<string>(`/v1/billing/summary.csv?${range()}`);
    expect(csv.trimEnd().split('\n')).toHaveLength(1 + items.length);
  });

  it('goes on over slices in which nothing was used for the first time', async () => {
    const steady = await test.renter();
    const today = Math.floor(test.clock.now() / DAY_MS);
    test.core.platform.store.transact((tx) => {
      for (const [key, days] of [
        ['a', DAYS],
        ['b', DAYS],
        ['c', DAYS],
        ['d', DAYS],
        ['e', DAYS],
        ['of today', 1],
      ] as const)
        for (let ago = 0; ago < days; ago++) {
          const row = { organization_id: steady.organizationId, key, day: today - ago, instance_id: '' };
          tx.run(query.insertInto('charge_days').values({ ...row, grouped_by: 'label', gpu_micro: 1, disk_micro: 1 }));
        }
    });
    const sums = ['a', 'b', 'c', 'd', 'e'].map((key) => [key, DAYS, DAYS]);
    expect(await rowsOf(`by=label&${range()}`, steady.api)).toEqual([...sums, ['of today', 1, 1]]);
    const page = await read(`by=label&limit=6&${range()}`, steady.api);
    expect(page.items).toHaveLength(6);
    const csv = await steady.api.get<string>(`/v1/billing/summary.csv?by=label&${range()}`);
    expect(csv.trimEnd().split('\n')).toHaveLength(7);
  });

  it('looks at a bounded number of rows at a time, by an index in its order', async () => {
    const { store } = test.core.platform;
    const transact = store.transact.bind(store);
    const rows: number[] = [];
    const statements = new Set<string>();
    store.transact = (work) =>
      transact((tx) => {
        rows.push(0);
        const all: typeof tx.all = (text) => {
          const answer = tx.all(text);
          rows.push((rows.pop() ?? 0) + answer.length);
          statements.add(text.compile().sql);
          return answer;
        };
        return work({ ...tx, all });
      });
    try {
      await read(range(), owner.api);
    } finally {
      store.transact = transact;
    }
    // A slice reads 250 rows, and the sums and names of 50 of them.
    expect(Math.max(...rows)).toBeLessThanOrEqual(350);
    expect(rows.length).toBeGreaterThan(20);
    const database = new BetterSqlite3(test.databaseFile, { readonly: true });
    const scans = [...statements].filter((text) => text.includes('is_repeated'));
    const plans = scans.map((text) => {
      const none = Array.from(text.matchAll(/\?/g), () => null);
      return database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all(...none);
    });
    database.close();
    const searched = 'SEARCH charged USING COVERING INDEX charge_days_by_day';
    expect(plans.map(([first]) => first?.detail)).toEqual([
      `${searched} (organization_id=? AND grouped_by=? AND day>? AND day<?)`,
      `${searched} (organization_id=? AND grouped_by=? AND (day,key)>(?,?) AND day<?)`,
    ]);
    expect(JSON.stringify(plans)).not.toContain('TEMP');
  });
});
