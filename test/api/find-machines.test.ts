import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BY_NAME, whereNameBegins } from '../../control-plane/services/machines/machines.js';
import { restOf } from '../../control-plane/services/system/pages.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane } from '../harness/control-plane.js';

interface Page {
  items: { id: string; name: string }[];
  next_cursor: string | null;
}

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
  for (const name of ['rack 2', 'Rack', 'RACK', 'rank', '100% _a', 'Öre']) {
    const agent = await test.host({ name, gpus: 1 });
    if (name === 'rack 2') await agent.claim({ agentVersion: '0.0.1' });
  }
});
afterAll(() => test.stop());

const find = (asked: Record<string, string>) =>
  test.operator.get<Page>(`/v1/operator/machines?${new URLSearchParams(asked).toString()}`);
const namesOf = ({ items }: Page) => items.map(({ name }) => name);

it('finds machines by the beginning of their name, in upper or lower case, page by page', async () => {
  const found = await find({ name: 'rAC' });
  expect(namesOf(found).map((name) => name.toLowerCase())).toEqual(['rack', 'rack', 'rack 2']);
  const ids: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = await find({ name: 'rAC', limit: '1', ...(cursor && { cursor }) });
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.next_cursor;
  }
  expect(ids).toEqual(found.items.map(({ id }) => id));
  expect(namesOf(await find({ name: 'Ö' }))).toEqual(['Öre']);
  expect(namesOf(await find({ name: 'ack' }))).toEqual([]);
  expect(namesOf(await find({ name: 'rack', outdated: 'true' }))).toEqual(['rack 2']);
});

it('takes no letter of a name for a wildcard, and finds nothing that was removed', async () => {
  expect(namesOf(await find({ name: '100%' }))).toEqual(['100% _a']);
  expect(namesOf(await find({ name: '%' }))).toEqual([]);
  const [gone] = (await find({ name: 'rank' })).items;
  const offer = { machine_id: gone?.id, num_gpus: 1, price_per_hour_micro: 1, storage_price_per_gb_hour_micro: 1 };
  const { id } = await test.operator.post<{ id: string }>('/v1/operator/offers', offer);
  const offers = async () => (await test.operator.get<Page>('/v1/operator/offers?withdrawn=false')).items;
  expect((await offers()).map((each) => each.id)).toEqual([id]);
  await test.operator.request('DELETE', `/v1/operator/machines/${gone?.id}`);
  expect(await offers()).toEqual([]);
  expect(namesOf(await find({ name: 'rank' }))).toEqual([]);
});

it('refuses an empty name, and a longer one than any has', async () => {
  const ask = (asked: string) => test.operator.request('GET', `/v1/operator/machines?${asked}`);
  const refused = { status: 422, body: { code: 'VALIDATION_FAILED' } };
  expect(await ask('name=')).toMatchObject(refused);
  expect(await ask(`name=${'x'.repeat(65)}`)).toMatchObject(refused);
});

it('reads no more of a large marketplace than it finds', () => {
  const database = new BetterSqlite3(test.databaseFile, { readonly: true });
  const all = query.selectFrom('machines').selectAll().where('removed_at', 'is', null);
  for (const request of [{}, { cursor: Buffer.from('["rack","i"]').toString('base64url') }]) {
    const { sql, parameters } = restOf(whereNameBegins(all, 'rack'), request, BY_NAME.by).compile();
    const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
    expect(plan.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/^SEARCH machines USING INDEX machines_by_name /),
    ]);
  }
  database.close();
});
