import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Caller } from '../../control-plane/domain/caller.js';
import { listInstances } from '../../control-plane/services/actions/read.js';
import { templatesSlice } from '../../control-plane/services/catalogue/template-list.js';
import { SLICE_BYTES } from '../../control-plane/services/system/pages.js';
import type { App } from '../../control-plane/services/parts/parts.js';
import { query, sql, statement } from '../../control-plane/store/sql.js';
import type { Tx } from '../../control-plane/store/store.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

/** Rows of so many bytes: a slice has a few of them. */
const LONG = 300_000;
const ROWS = 20;
const MOST = Math.ceil(SLICE_BYTES / LONG);

interface Page {
  items: { id: string; name?: string }[];
  next_cursor?: string | null;
}

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

const callerIn = ({ organizationId }: Renter) =>
  ({ kind: 'session', role: 'admin', organizationId }) as unknown as Caller;
const bytesOf = (items: readonly object[]) => JSON.stringify(items).length;

/** Every page of a list, as a client reads it that goes on while there is a cursor. */
async function pagesOf(path: string, limit: number): Promise<Page['items'][]> {
  const pages: Page['items'][] = [];
  for (let cursor = ''; ;) {
    const page = await renter.api.get<Page>(`${path}limit=${limit}${cursor}`);
    pages.push(page.items);
    if (typeof page.next_cursor !== 'string') return pages;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

/** Looks at the rows that a use case reads. */
function readRows(use: (platform: App) => void): object[] {
  const { platform } = test.core;
  const rows: object[] = [];
  const transact = (work: (tx: Tx) => unknown) =>
    platform.store.transact((tx) =>
      work({
        ...tx,
        all: (text) => {
          const found = tx.all(text);
          rows.push(...(found as unknown[] as object[]));
          return found;
        },
      }),
    );
  use({ ...platform, store: { transact } as unknown as App['store'] });
  return rows;
}

describe('a list of long templates', () => {
  const command = Array.from({ length: 75 }, () => 'x'.repeat(4_000));

  beforeAll(async () => {
    for (let index = 0; index < ROWS; index++)
      await renter.api.post('/v1/templates', {
        name: `Long ${String(index).padStart(2, '0')}`,
        image: 'long:1',
        command,
      });
    for (let index = 0; index < 5; index++)
      await renter.api.post('/v1/templates', { name: `Short ${index}`, image: 'short:1', readme: 'r'.repeat(60_000) });
  });

  it('comes in pages that end where they are long, and is whole without a limit', async () => {
    const path = '/v1/templates?tab=organization&';
    const pages = await pagesOf(path, 100);
    expect(pages.length).toBeGreaterThanOrEqual(ROWS / MOST);
    for (const items of pages) expect(items.length).toBeLessThanOrEqual(MOST + 5);
    const whole = await renter.api.get<Page>(path);
    expect(whole).toEqual({ items: pages.flat() });
    expect(whole.items).toHaveLength(ROWS + 5);
  });

  it('is read so that a slice has no more than a megabyte and one template', () => {
    const { items, next_cursor } = templatesSlice(test.core.platform, callerIn(renter), { tab: 'organization' });
    expect(items).toHaveLength(MOST);
    expect(bytesOf(items)).toBeLessThan(SLICE_BYTES + 2 * LONG);
    expect(next_cursor).not.toBeNull();
  });

  it('is as full as was asked for where only what no list shows is long', async () => {
    const page = await renter.api.get<Page>('/v1/templates?tab=organization&words=short&limit=5');
    expect(page.items.map(({ name }) => name)).toEqual(['Short 0', 'Short 1', 'Short 2', 'Short 3', 'Short 4']);
  });

  it('is searched without reading what is long of the others', () => {
    const rows = readRows((platform) => {
      const found = templatesSlice(platform, callerIn(renter), { tab: 'organization', words: 'short', limit: 2 });
      expect(found.items).toHaveLength(2);
    });
    expect(rows.length).toBeGreaterThan(ROWS);
    expect(rows.filter((row) => 'command' in row || 'env_encrypted' in row)).toHaveLength(2);
    expect(bytesOf(rows)).toBeLessThan(LONG);
  });
});

describe('a list of instances with those that are destroyed', () => {
  beforeAll(async () => {
    const body = { offer_id: await test.offer(await test.host()), template_id: await test.template(), disk_gb: 10 };
    for (let index = 0; index < 3; index++) {
      const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
      await statusIs(renter.api, id, 'running');
      await renter.api.delete(`/v1/instances/${id}`);
      await statusIs(renter.api, id, 'destroyed');
    }
    const command = JSON.stringify(['x'.repeat(LONG)]);
    const snapshot = sql<string>`json_set(template_snapshot, '$.command', json(${command}))`;
    const { store } = test.core.platform;
    store.transact((tx) => {
      tx.run(query.updateTable('instances').set({ template_snapshot: snapshot }));
      const columns = tx
        .all(statement<{ name: string }>(sql`SELECT name FROM pragma_table_info('instances')`))
        .map(({ name }) => (name === 'id' ? "printf('00000000-0000-4000-8000-%012d', i)" : name));
      const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})`;
      const rows = `SELECT ${columns.join(', ')} FROM n, (SELECT * FROM instances LIMIT 1)`;
      tx.run(statement(sql.raw(`${numbers} INSERT INTO instances ${rows}`)));
    });
  });

  it('ends its pages where they are long, and is whole without a limit', async () => {
    const path = '/v1/instances?include_destroyed=true&';
    const pages = await pagesOf(path, 500);
    expect(pages.length).toBeGreaterThanOrEqual(ROWS / MOST);
    for (const items of pages) expect(items.length).toBeLessThanOrEqual(MOST);
    const whole = await renter.api.get<Page>(path);
    expect(whole).toEqual({ items: pages.flat() });
    expect(whole.items).toHaveLength(ROWS + 3);
  });

  it('is read so that one turn has no more than a megabyte and one instance', () => {
    const rows = readRows((platform) => {
      const page = listInstances(platform, callerIn(renter), { include_destroyed: true, limit: 500 });
      expect(page.items).toHaveLength(MOST);
    });
    expect(rows.filter((row) => 'template_snapshot' in row)).toHaveLength(MOST);
  });
});

it('a destroyed instance keeps what its template is called and runs, and a long one without command and environment', async () => {
  const offer_id = await test.offer(await test.host());
  const bytesOfTemplate = (id: string) => {
    const bytes = sql<number>`octet_length(template_snapshot)`.as('bytes');
    return test.core.platform.store.transact(
      (tx) => tx.get(query.selectFrom('instances').select(bytes).where('id', '=', id))?.bytes ?? 0,
    );
  };
  for (const [name, command] of [
    ['long', ['run', 'é'.repeat(4_000)]],
    ['short', ['run', 'e'.repeat(4_000)]],
  ] as const) {
    const env = [{ key: 'A', value: '1' }];
    const template = await renter.api.post<{ id: string }>('/v1/templates', {
      name,
      image: 'an/image:1',
      command,
      env,
    });
    const body = { offer_id, template_id: template.id, disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({ template: { command, env } });
    await renter.api.delete(`/v1/instances/${id}`);
    const kept = name === 'long' ? { command: [], env: [] } : { command, env };
    expect(await statusIs(renter.api, id, 'destroyed')).toMatchObject({
      template: { id: template.id, name, image: 'an/image:1', ...kept },
    });
    expect(bytesOfTemplate(id)).toBeLessThanOrEqual(8192);
  }
});
