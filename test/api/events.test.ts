import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATORS } from '../../control-plane/domain/event.js';
import { recordEvent, recordInstanceEvent } from '../../control-plane/services/events/record.js';
import { MOST_SCANNED } from '../../control-plane/services/events/slice.js';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { recordCredits } from '../harness/event-reader.js';

interface Event {
  id: string;
  source: string;
  type: string;
  subject: string;
  time: string;
  data: Record<string, unknown>;
}
interface Page {
  items: Event[];
  next_cursor: string | null;
  last_id: string | null;
  has_more: boolean;
}

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

const list = (api: ApiClient, query: Record<string, string | number> = {}, path = '/v1/events') =>
  api.get<Page>(
    `${path}?${new URLSearchParams(Object.fromEntries(Object.entries(query).map(([name, value]) => [name, `${value}`]))).toString()}`,
  );
const newestId = async (api: ApiClient) => (await list(api, { limit: 1 })).last_id ?? '';
const amounts = ({ items }: Pick<Page, 'items'>) => items.map(({ data }) => data['amount_micro']);
const refusal = async (api: ApiClient, query: string, path = '/v1/events') =>
  (await api.request<{ code: string; oldest_id?: string; details?: { path: string }[] }>('GET', `${path}?${query}`))
    .body;

async function deployed(by: Renter): Promise<string> {
  const offer_id = await test.offer(await test.host());
  const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
  const { id } = await by.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(by.api, id, 'running');
  return id;
}

/** Reads on from `after` until nothing follows. */
async function poll(api: ApiClient, after: string, query: Record<string, string | number> = {}) {
  const pages: Page[] = [];
  for (let next = after; ;) {
    const page = await list(api, { ...query, after: next });
    pages.push(page);
    next = page.last_id ?? '';
    if (!page.has_more) return { pages, items: pages.flatMap(({ items }) => items), last: next };
  }
}

describe('events as pages', () => {
  it('are the timeline of an instance, and the timeline is a part of them', async () => {
    const after = await newestId(renter.api);
    const id = await deployed(renter);
    test.clock.advance(5);
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    const { items } = await renter.api.get<{ items: { at: string; kind: string; message: string }[] }>(
      `/v1/instances/${id}/events`,
    );
    const told = await list(renter.api, { after, instance_id: id });
    expect(told.items.length).toBeGreaterThan(3);
    expect(told.items.map(({ time, data }) => ({ at: time, kind: data['kind'], message: data['message'] }))).toEqual(
      [...items].reverse(),
    );
    expect(told.items.every(({ subject }) => subject === `instances/${id}`)).toBe(true);
    const changes = told.items
      .filter(({ type }) => type === 'instance.status_changed')
      .map(({ data }) => data['status']);
    expect(changes).toEqual(['creating', 'running', 'stopping', 'stopped']);
    // The other way round, a new note is in both.
    test.core.platform.store.transact((tx) =>
      recordInstanceEvent(tx, id, 'instance.noted', { kind: 'ssh_silent', message: 'noted' }, {}),
    );
    const [first] = (await list(renter.api, { instance_id: id, limit: 1 })).items;
    const timeline = await renter.api.get<{ items: object[] }>(`/v1/instances/${id}/events?limit=1`);
    expect(timeline.items).toEqual([{ at: first?.time, ...first?.data }]);
    expect(first?.data).toEqual({ kind: 'ssh_silent', message: 'noted' });
  });

  it('have the attributes of CloudEvents', async () => {
    const after = await newestId(renter.api);
    recordCredits(test, renter.organizationId, 1);
    const { items } = await list(renter.api, { after });
    expect(items).toEqual([
      {
        specversion: '1.0',
        id: expect.stringMatching(/^\d+\.\d+$/) as string,
        source: `/v1/orgs/${renter.organizationId}`,
        type: 'billing.credited',
        subject: `orgs/${renter.organizationId}`,
        time: new Date(test.clock.now()).toISOString(),
        data: { amount_micro: 1, balance_micro: 0, reason: null },
      },
    ]);
  });

  it('come newest first by cursor, and oldest first after an id, each once', async () => {
    const { api, organizationId } = await test.renter(0);
    const after = await newestId(api);
    recordCredits(test, organizationId, 25);
    const { pages, items, last } = await poll(api, after, { limit: 10 });
    expect(pages.map((page) => page.items.length)).toEqual([10, 10, 5]);
    expect(pages.map(({ has_more }) => has_more)).toEqual([true, true, false]);
    expect(amounts({ items })).toEqual(Array.from({ length: 25 }, (_, index) => index + 1));
    const backwards: unknown[] = [];
    let cursor: string | null = '';
    while (cursor !== null && backwards.length < 25) {
      const page: Page = await list(api, { limit: 10, ...(cursor === '' ? {} : { cursor }) });
      expect(page.last_id).toBe(cursor === '' ? last : null);
      backwards.push(...amounts(page));
      cursor = page.next_cursor;
    }
    expect(backwards.slice(0, 25)).toEqual(amounts({ items }).reverse());
    expect(await list(api, { after: last })).toEqual({ items: [], next_cursor: null, last_id: last, has_more: false });
  });

  it('begin with 100 where no limit is given', async () => {
    const { api, organizationId } = await test.renter(0);
    recordCredits(test, organizationId, 150);
    const page = await list(api);
    expect(page.items).toHaveLength(100);
    expect(page.next_cursor).not.toBe(null);
  });

  it('say where to go on also where there are none', async () => {
    const start = await list(test.operator, {}, '/v1/operator/events');
    expect(start).toEqual({ items: [], next_cursor: null, last_id: '0.0', has_more: false });
    const data = { machine_id: randomUUID(), machine_name: 'm' };
    test.core.platform.store.transact((tx) => recordEvent(tx, OPERATORS, 'machine.back', 'machines/m', data));
    const after = await list(test.operator, { after: '0.0' }, '/v1/operator/events');
    expect(after.items).toMatchObject([{ type: 'machine.back', source: '/v1/operator', data }]);
    expect((await list(test.operator, { after: after.last_id ?? '' }, '/v1/operator/events')).items).toEqual([]);
  });

  it('are filtered by types and instance', async () => {
    const own = await test.renter();
    const after = await newestId(own.api);
    const [one, other] = [await deployed(own), await deployed(own)];
    recordCredits(test, own.organizationId, 3);
    const types = 'billing.credited, billing.paid';
    expect((await list(own.api, { after, type: types })).items.map(({ type }) => type)).toEqual(
      Array.from({ length: 3 }, () => 'billing.credited'),
    );
    const ofOne = await list(own.api, { after, instance_id: one });
    expect(new Set(ofOne.items.map(({ subject }) => subject))).toEqual(new Set([`instances/${one}`]));
    expect(ofOne.last_id).toBe(await newestId(own.api));
    const changes = await list(own.api, { instance_id: other.toUpperCase(), type: 'instance.status_changed' });
    expect(changes.items.map(({ data }) => data['status'])).toEqual(['running', 'creating']);
    const paged = await list(own.api, { instance_id: other, type: 'instance.status_changed', limit: 1 });
    const next = await list(own.api, { instance_id: other, limit: 500, cursor: paged.next_cursor ?? '' });
    expect(next.items.at(-1)).toEqual(changes.items.at(-1));
    expect((await list(own.api, { after, instance_id: one, limit: 1 })).has_more).toBe(true);
  });

  it('of operators are filtered by the instance and the machine that their data name', async () => {
    const [instance_id, machine_id] = [randomUUID(), randomUUID()];
    const command = { machine_id, machine_name: 'm', command_id: randomUUID(), command: 'stop', since: 'now' };
    const after = (await list(test.operator, {}, '/v1/operator/events')).last_id ?? '';
    test.core.platform.store.transact((tx) => {
      recordEvent(tx, OPERATORS, 'machine.back', 'machines/m', { machine_id: randomUUID(), machine_name: 'other' });
      for (const id of [instance_id, randomUUID()])
        recordEvent(tx, OPERATORS, 'command.stuck', `instances/${id}`, {
          ...command,
          instance_id: id,
          since: '2026-01-01T00:00:00.000Z',
        });
    });
    for (const query of [{ instance_id }, { instance_id, after }]) {
      const { items } = await list(test.operator, query, '/v1/operator/events');
      expect(items.map(({ data }) => data['instance_id'])).toEqual([instance_id]);
    }
    for (const query of [{ machine_id }, { machine_id, after }]) {
      const { items } = await list(test.operator, query, '/v1/operator/events');
      expect(items.map(({ data }) => data['machine_id'])).toEqual([machine_id, machine_id]);
    }
  });

  it('of an organization have no filter by machine, whatever a renter sends as one', async () => {
    const { items } = await list(renter.api);
    expect(items).not.toEqual([]);
    const path = `/v1/events?machine_id=${randomUUID()}&machine_id=x`;
    expect((await renter.api.get<Page>(path)).items).toEqual(items);
  });

  it('are those of the caller’s organization alone, whatever is asked for', async () => {
    const [one, other] = [await test.renter(), await test.renter()];
    const instance_id = await deployed(one);
    const after = await newestId(one.api);
    recordCredits(test, one.organizationId, 1);
    recordCredits(test, other.organizationId, 100);
    const mine = (await list(other.api)).items;
    expect(mine.every(({ source }) => source === `/v1/orgs/${other.organizationId}`)).toBe(true);
    expect((await list(other.api, { instance_id })).items).toEqual([]);
    expect((await list(other.api, { instance_id, after: '0.0' })).items).toEqual([]);
    const foreign = await refusal(other.api, `after=${after}`);
    // The number may exist in both; what follows is one's own in any case.
    expect(JSON.stringify(foreign)).not.toContain(one.organizationId);
    const strange = await one.api.request('GET', '/v1/events', undefined, { 'X-Org-Id': other.organizationId });
    expect(strange).toMatchObject({ status: 403, body: { code: 'ORG_MISMATCH' } });
  });

  it('of a read with a filter end after so many rows, and say where to go on', async () => {
    const { api, organizationId } = await test.renter(0);
    const after = await newestId(api);
    const rare = { amount_micro: 7, balance_micro: 0, payment_id: 'p' };
    const recordRare = () =>
      test.core.platform.store.transact((tx) => recordEvent(tx, organizationId, 'billing.paid', 'orgs/x', rare));
    recordRare();
    recordCredits(test, organizationId, 2 * MOST_SCANNED + 100);
    recordRare();
    const { pages, items } = await poll(api, after, { type: 'billing.paid' });
    expect(items).toHaveLength(2);
    expect(pages.map((page) => page.items.length)).toEqual([1, 0, 1]);
    const back: Page[] = [];
    for (let cursor: string | null = ''; cursor !== null; cursor = back.at(-1)?.next_cursor ?? null)
      back.push(await list(api, { type: 'billing.paid', ...(cursor === '' ? {} : { cursor }) }));
    expect(back.map((page) => page.items.length)).toEqual([1, 0, 1]);
  });

  it('refuse what they do not know', async () => {
    const own = await test.renter(0);
    for (const type of ['nothing', 'billing.paid,', '', ',', 'billing.paid,instance', 'billing.paid;x'])
      expect(await refusal(own.api, `type=${encodeURIComponent(type)}`), type).toMatchObject({
        code: 'VALIDATION_FAILED',
        details: [{ path: 'type' }],
      });
    expect(await refusal(own.api, 'instance_id=x')).toMatchObject({ code: 'VALIDATION_FAILED' });
    const page = await list(own.api, { after: '0.0' });
    expect(await refusal(own.api, `after=${page.last_id}&cursor=WzFd`)).toMatchObject({
      code: 'VALIDATION_FAILED',
      details: [{ path: 'cursor' }],
    });
    for (const after of [
      '',
      'x',
      '1',
      '1.',
      '9.9',
      '-1.-1',
      '1.99999999999999999999',
      page.last_id?.replace('.', '9.'),
    ])
      expect(await refusal(own.api, `after=${after}`), after).toMatchObject({ code: 'EVENTS_EXPIRED' });
  });

  it('after an id whose successors were deleted are refused, with the oldest that is left', async () => {
    const own = await test.renter();
    const id = await deployed(own);
    const early = await list(own.api, { instance_id: id, limit: 1 });
    const insert = () => recordInstanceEventMany(id, 1_000);
    insert();
    const refused = await refusal(own.api, `after=${early.last_id}`);
    expect(refused.code).toBe('EVENTS_EXPIRED');
    expect(await refusal(own.api, 'after=0.0')).toEqual({ ...refused, request_id: expect.any(String) as string });
    const rest = await poll(own.api, refused.oldest_id ?? '', { limit: 500 });
    expect(rest.items.length).toBeGreaterThan(990);
    const timeline = await own.api.get<{ items: object[] }>(`/v1/instances/${id}/events?limit=500`);
    expect(timeline.items).toHaveLength(500);
    expect((await list(own.api, { instance_id: id, limit: 500 })).items).toHaveLength(500);
  });
});

function recordInstanceEventMany(id: string, count: number): void {
  test.core.platform.store.transact((tx) => {
    for (let index = 0; index < count; index++)
      recordInstanceEvent(tx, id, 'instance.noted', { kind: 'note', message: `note ${index}` }, {});
  });
}
