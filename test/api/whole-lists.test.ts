import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import type { InstanceBody } from '../harness/api-client.js';
import { answerList } from '../../control-plane/http/routes/whole-list.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

/** More than three slices, and not a whole number of them. */
const ROWS = 650;

interface List {
  items: { id: string }[];
  next_cursor?: string | null;
}

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  const agent = await test.host();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  await renter.api.delete(`/v1/instances/${id}`);
  await statusIs(renter.api, id, 'destroyed');
  copy('instances', `id = '${id}'`);
  copy('transactions', "kind = 'credit'");
});
afterAll(() => test.stop());

/** Adds so many copies of a row, each with an id of its own. */
function copy(table: 'instances' | 'transactions', where: string): void {
  test.core.platform.store.transact((tx) => {
    const columns = tx
      .all(statement<{ name: string }>(sql`SELECT name FROM pragma_table_info(${sql.lit(table)})`))
      .map(({ name }) => (name === 'id' ? "printf('00000000-0000-4000-8000-%012d', i)" : name));
    const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})`;
    const rows = `SELECT ${columns.join(', ')} FROM n, (SELECT * FROM ${table} WHERE ${where} LIMIT 1)`;
    tx.run(statement(sql.raw(`${numbers} INSERT INTO ${table} ${rows}`)));
  });
}

async function walk(path: string): Promise<List['items']> {
  const items: List['items'] = [];
  for (let cursor = ''; ;) {
    const page = await renter.api.get<List>(`${path}limit=300${cursor}`);
    items.push(...page.items);
    if (typeof page.next_cursor !== 'string') return items;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

describe.each(['/v1/instances?include_destroyed=true&', '/v1/billing/transactions?'])('%s', (path) => {
  it('is whole without a limit, and the same as in pages', async () => {
    const whole = await renter.api.get<List>(path);
    expect(whole.items.length).toBeGreaterThan(ROWS);
    expect(whole).toEqual({ items: await walk(path) });
  });

  it('is JSON, and can be asked for by HEAD', async () => {
    const headers = { Authorization: `Bearer ${renter.api.token ?? ''}` };
    const whole = await fetch(`${test.url}${path}`, { headers });
    expect(whole.headers.get('content-type')).toBe('application/json; charset=utf-8');
    await whole.arrayBuffer();
    expect((await fetch(`${test.url}${path}`, { headers, method: 'HEAD' })).status).toBe(200);
  });

  it('may be left half read', async () => {
    const aborted = new AbortController();
    const headers = { Authorization: `Bearer ${renter.api.token ?? ''}` };
    const answer = await fetch(`${test.url}${path}`, { headers, signal: aborted.signal });
    expect(answer.status).toBe(200);
    aborted.abort();
    expect((await renter.api.get<List>(path)).items.length).toBeGreaterThan(ROWS);
    expect(test.logged(50)).toEqual([]);
  });
});

it('what is added once a list has begun is not in it', async () => {
  const answer = await fetch(`${test.url}/v1/billing/transactions`, {
    headers: { Authorization: `Bearer ${renter.api.token ?? ''}` },
  });
  const credit = { amount_micro: 1_000_000, reason: 'late' };
  await test.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, credit);
  const { items } = (await answer.json()) as { items: { reason: string | null }[] };
  expect(items.some(({ reason }) => reason === 'late')).toBe(false);
});

it('each slice is read in a turn of its own, and only when the one before was taken', async () => {
  let turn = 0;
  const count = () => {
    turn += 1;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  const reads: { turn: number; limit: number | undefined }[] = [];
  const page = (next_cursor: string | null) => ({ items: [{ id: 'a' }], next_cursor });
  const request = { isStillAdmitted: () => true };
  const reply = { request, type: () => undefined, serialize: (page: object) => JSON.stringify(page) };
  const answer = answerList(
    reply as unknown as FastifyReply,
    {},
    ({ limit }: { limit?: number; cursor?: string }) => {
      reads.push({ turn, limit });
      return page(reads.length < 4 ? 'next' : null);
    },
    (item) => item,
  ) as unknown as Readable;
  let text = '';
  for await (const chunk of answer) text += String(chunk);
  clearImmediate(timer);
  expect(JSON.parse(text)).toEqual({ items: Array.from({ length: 4 }, () => ({ id: 'a' })) });
  expect(new Set(reads.map((read) => read.turn)).size).toBe(4);
  expect(reads.map(({ limit }) => limit)).toEqual([200, 200, 200, 200]);
});
