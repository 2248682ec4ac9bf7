import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { InstanceBody } from '../harness/api-client.js';
import {
  LISTS_OF_PERSON,
  ListTurns,
  REQUESTS_OF_USER,
  WAITING_OF_PERSON,
  WAIT_MS,
} from '../../control-plane/http/limits/list-turns.js';
import { MINUTE_MS } from '../../shared/time.js';
import { ManualClock } from '../harness/manual-clock.js';
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
  const request = { isStillAdmitted: () => true, caller: { kind: 'session', userId: 'u' } };
  const holder = { hasPaid: true, person: 'u', network: '' };
  const lists = new ListTurns(setImmediate, new ManualClock(), () => holder);
  lists.ask(request as unknown as FastifyRequest, () => undefined);
  const reply = {
    request,
    raw: new EventEmitter(),
    server: { lists },
    type: () => undefined,
    serialize: (page: object) => JSON.stringify(page),
  };
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

it('many whole lists at once of one user are all answered', async () => {
  const paths = ['/v1/instances?include_destroyed=true', '/v1/billing/transactions', '/v1/billing/transactions'];
  const asked = Array.from({ length: 12 }, (_, at) => renter.api.get<List>(paths[at % 3] ?? ''));
  for (const { items } of await Promise.all(asked)) expect(items.length).toBeGreaterThan(ROWS);
});

it('each list waits for its turn, and a long one for a place', async () => {
  const headers = { Authorization: `Bearer ${renter.api.token ?? ''}` };
  const [asks, begins] = [vi.spyOn(ListTurns.prototype, 'ask'), vi.spyOn(ListTurns.prototype, 'begin')];
  const counts = async (path: string) => {
    const [asked, begun] = [asks.mock.calls.length, begins.mock.calls.length];
    expect((await fetch(test.url + path, { headers }).then((answer) => answer.text())).length).toBeGreaterThan(0);
    return [asks.mock.calls.length - asked, begins.mock.calls.length - begun];
  };
  expect(await counts('/v1/templates')).toEqual([1, 0]);
  expect(await counts('/v1/audit-log.csv')).toEqual([1, 0]);
  expect(await counts('/v1/billing/transactions?limit=5')).toEqual([1, 0]);
  expect(await counts('/v1/billing/transactions')).toEqual([1, 1]);
  expect(await counts('/v1/billing/transactions.csv')).toEqual([1, 1]);
  vi.restoreAllMocks();
});

describe('lists that share the event loop', () => {
  const clock = new ManualClock();
  let deferred: (() => void)[] = [];
  const make = () => {
    deferred = [];
    const holderOf = ({ caller }: FastifyRequest) => {
      const person = (caller as { userId: string }).userId;
      return { hasPaid: person === 'payer', person, network: person.split('-')[0] ?? '' };
    };
    return new ListTurns((run) => void deferred.push(run), clock, holderOf);
  };
  const nextTurn = () => {
    for (const run of deferred.splice(0)) run();
  };
  const by = (userId: string) => ({ caller: { kind: 'session', userId } }) as unknown as FastifyRequest;
  const replyTo = (userId: string) => {
    const raw = Object.assign(new EventEmitter(), {
      destroyed: false,
      destroy: () => {
        raw.destroyed = true;
        raw.emit('close');
      },
    });
    return { request: by(userId), raw } as unknown as FastifyReply;
  };
  const isRefused = { code: 'RATE_LIMITED', extra: { retry_after_seconds: WAIT_MS / 1_000 } };

  it('are read one piece in a turn, and users take turns', () => {
    const lists = make();
    const ran: string[] = [];
    for (const user of ['a', 'a', 'a', 'b', 'a', 'b']) lists.ask(by(user), () => void ran.push(user));
    const turns = [ran.join('')];
    while (deferred.length > 0) {
      nextTurn();
      turns.push(ran.join(''));
    }
    expect(turns).toEqual(['a', 'aa', 'aab', 'aaba', 'aabab', 'aababa', 'aababa']);
    // At rest, the next one does not wait.
    lists.ask(by('c'), () => void ran.push('c'));
    expect(ran.at(-1)).toBe('c');
  });

  it('are refused to a user with too many that wait, and to nobody else', () => {
    const lists = make();
    for (let count = 0; count <= REQUESTS_OF_USER; count++) lists.ask(by('a'), () => undefined);
    expect(() => lists.ask(by('a'), () => undefined)).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
    expect(() => lists.ask(by('b'), () => undefined)).not.toThrow();
  });

  it('wait for a place if they are long, first in, first out, so many and so long', async () => {
    const lists = make();
    const sent = Array.from({ length: LISTS_OF_PERSON }, () => replyTo('payer'));
    for (const reply of sent) expect(lists.begin(reply)).toBe(undefined);
    const waiting = Array.from({ length: WAITING_OF_PERSON }, () => replyTo('payer'));
    const began: number[] = [];
    const places = waiting.map((reply, at) => lists.begin(reply)?.then(() => began.push(at)));
    expect(() => lists.begin(replyTo('payer'))).toThrow(expect.objectContaining(isRefused));
    expect(lists.begin(replyTo('other'))).toBe(undefined);
    sent[1]?.raw.emit('close');
    await places[0];
    // One that is gone while it waits takes no place.
    waiting[1]?.raw.emit('close');
    await expect(places[1]).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    sent[0]?.raw.emit('close');
    await places[2];
    expect(began).toEqual([0, 2]);
    clock.advance(WAIT_MS);
    for (const place of places.slice(3)) await expect(place).rejects.toMatchObject(isRefused);
  });

  it('lose their place if their client takes nothing for a minute', () => {
    const lists = make();
    const [slow, dead] = [replyTo('payer'), replyTo('payer')];
    for (const reply of [slow, dead]) void lists.begin(reply);
    clock.advance(MINUTE_MS - 1);
    void lists.turn(slow);
    clock.advance(1);
    expect([slow.raw.destroyed, dead.raw.destroyed]).toEqual([false, true]);
    expect(lists.begin(replyTo('payer'))).toBe(undefined);
  });

  it('of strangers give way to a person who has waited, and those of payers do not', async () => {
    const lists = make();
    const payer = replyTo('payer');
    void lists.begin(payer);
    const held = ['a', 'b', 'c', 'd'].flatMap((user) => [replyTo(`x-${user}`), replyTo(`x-${user}`)]);
    for (const reply of held) expect(lists.begin(reply)).toBe(undefined);
    const place = lists.begin(replyTo('honest'));
    expect(place).toBeInstanceOf(Promise);
    expect(lists.begin(replyTo('payer'))).toBe(undefined);
    clock.advance(WAIT_MS);
    await place;
    expect(held.filter(({ raw }) => raw.destroyed)).toHaveLength(1);
    expect(payer.raw.destroyed).toBe(false);
  });
});
