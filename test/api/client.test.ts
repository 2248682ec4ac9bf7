import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ApiError,
  connect,
  EventsExpiredError,
  UnreachableError,
  type ConnectOptions,
  type Gpurent,
  type GpurentEvent,
} from '../../client/api/index.js';
import { WITH_IDEMPOTENCY_KEY } from '../../client/api/connect.js';
import { realWait } from '../../client/api/retries.js';
import { statusIs, TestControlPlane, type Renter } from '../harness/control-plane.js';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { Cuttable } from '../harness/cuttable.js';
import { eventually } from '../../scripts/eventually.js';

let test: TestControlPlane;
let renter: Renter;
let client: Gpurent;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter();
  client = connect({ url: test.url, token: renter.api.token ?? '' });
});

/** Lets Node collect garbage now. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

/** The waits of a client that does not wait. */
function impatient(options: Partial<ConnectOptions> & { url: string }): { client: Gpurent; waits: number[] } {
  const waits: number[] = [];
  const wait = async (ms: number) => void waits.push(ms);
  return { client: connect({ wait, ...options }), waits };
}

async function refusal(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe('calls', () => {
  it('return what the API answers, typed by its document', async () => {
    const { user } = await client.get('/v1/me');
    const email: string = user.email;
    expect(email).toBe(renter.email);
    const { key, secret } = await client.post('/v1/api-keys', { body: { name: 'ci', kind: 'team' } });
    const withKey = connect({ url: `${test.url}/`, token: secret });
    const { items } = await withKey.get('/v1/api-keys');
    expect(items.map(({ id }) => id)).toContain(key.id);
    const gone = await client.delete('/v1/api-keys/{id}', { params: { path: { id: key.id } } });
    expect(gone).toBeUndefined();
    expect(await client.patch('/v1/orgs/current', { body: { name: 'renamed' } })).toMatchObject({ name: 'renamed' });
    const caps = { burn_per_hour_micro: null, day_micro: 5_000_000, month_micro: null };
    expect(await client.put('/v1/orgs/current/spend-caps', { body: caps })).toMatchObject({ day_micro: 5_000_000 });
    const csv: string = await client.get('/v1/billing/transactions.csv', { parseAs: 'text' });
    expect(csv).toContain('amount_micro');
  });

  it('act for another organization of a session', async () => {
    const { id } = await client.post('/v1/orgs', { body: { name: 'second' } });
    const second = connect({ url: test.url, token: renter.api.token ?? '', organizationId: id });
    expect(await second.get('/v1/orgs/current')).toMatchObject({ id, name: 'second' });
  });

  it('throw an error with the code, the fields of the code, and the id of the request', async () => {
    const error = await refusal(client.post('/v1/orgs', { body: { name: '' } }));
    expect(error).toMatchObject({ status: 422, code: 'VALIDATION_FAILED', requestId: expect.any(String) as string });
    if (!error.is('VALIDATION_FAILED', 'LIMIT_REACHED')) throw error;
    expect(error.is('TOKEN_INVALID')).toBe(false);
    expect(error.message).toContain('name');
    if (error.is('VALIDATION_FAILED')) expect(error.body.details[0]?.path).toBe('name');
  });

  it('of a session that has ended are refused once, and not sent again', async () => {
    let sent = 0;
    const fetch = async (request: Request) => {
      sent += 1;
      return globalThis.fetch(request);
    };
    const { client: stranger } = impatient({ url: test.url, token: 'ses_nonsense', fetch });
    expect(await refusal(stranger.get('/v1/me'))).toMatchObject({ status: 401, code: 'TOKEN_INVALID' });
    expect(sent).toBe(1);
  });
});

it('a list is read page by page, and only as far as it is used', async () => {
  for (let n = 0; n < 5; n += 1) await client.post('/v1/api-keys', { body: { name: `key-${n}` } });
  const asked: string[] = [];
  const fetch = (request: Request) => {
    asked.push(new URL(request.url).search);
    return globalThis.fetch(request);
  };
  const paged = connect({ url: test.url, token: renter.api.token ?? '', fetch });
  const names: string[] = [];
  for await (const { name } of paged.items('/v1/api-keys', { params: { query: { limit: 2 } } })) names.push(name);
  expect(names).toEqual(['key-4', 'key-3', 'key-2', 'key-1', 'key-0']);
  expect(asked).toHaveLength(3);
  for await (const { name } of paged.items('/v1/api-keys', { params: { query: { limit: 2 } } })) {
    expect(name).toBe('key-4');
    break;
  }
  expect(asked).toHaveLength(4);
});

describe('what is sent again', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  /** A server that gives these answers in turn, the last one for ever; 0: it cuts the connection. */
  async function answering(
    answers: [status: number, headers?: Record<string, string>, body?: string][],
  ): Promise<{ url: string; seen: { method: string; key: string | undefined }[] }> {
    const seen: { method: string; key: string | undefined }[] = [];
    const listener: RequestListener = (request, response) => {
      const [status, headers = {}, body = '{"code":"UNAVAILABLE","message":"later","request_id":"r"}'] = answers[
        Math.min(seen.length, answers.length - 1)
      ] ?? [0];
      seen.push({ method: request.method ?? '', key: request.headers['idempotency-key'] as string | undefined });
      if (status === 0) return void request.socket.destroy();
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
    };
    server = createServer(listener);
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
  }
  const OK = [200, {}, '{"items":[]}'] as [number, Record<string, string>, string];
  const deployBody = { offer_id: 'o', template_id: 't', disk_gb: 10 };

  it('is what only reads, after a cut or an answer of a proxy; at most four times in all', async () => {
    const { url, seen } = await answering([[0], [502], [504], OK]);
    const { client: other, waits } = impatient({ url });
    expect(await other.get('/v1/api-keys')).toEqual({ items: [] });
    expect(seen).toHaveLength(4);
    expect(waits.map((ms) => Math.floor(ms / 500))).toEqual([1, expect.any(Number), expect.any(Number)]);
    expect([...waits].sort((one, two) => one - two)).toEqual(waits);
    const dead = await answering([[0]]);
    await expect(impatient({ url: dead.url }).client.get('/v1/me')).rejects.toThrow(UnreachableError);
    expect(dead.seen).toHaveLength(4);
  });

  it('is what was refused for now, when the answer says', async () => {
    const { url, seen } = await answering([[429, { 'retry-after': '7' }], [503], [201, {}, '{"id":"x"}']]);
    const { client: other, waits } = impatient({ url });
    expect(await other.post('/v1/orgs', { body: { name: 'x' } })).toEqual({ id: 'x' });
    expect(seen).toHaveLength(3);
    expect(waits[0]).toBe(7_000);
    const busy = await answering([[429, { 'retry-after': '9999' }]]);
    const { client: patient, waits: long } = impatient({ url: busy.url });
    expect(await refusal(patient.get('/v1/me'))).toMatchObject({ status: 429, retryAfterSeconds: 9_999 });
    expect(Math.max(...long)).toBe(30_000);
  });

  it('is no change whose answer was lost, unless it carries a key', async () => {
    for (const answer of [0, 502, 504]) {
      const { url, seen } = await answering([[answer]]);
      await expect(impatient({ url }).client.post('/v1/orgs', { body: { name: 'x' } })).rejects.toThrow();
      expect(seen, String(answer)).toHaveLength(1);
    }
    const { url, seen } = await answering([[0], [502], [201, {}, '{"id":"x"}']]);
    await impatient({ url }).client.post('/v1/instances', { body: deployBody });
    expect(seen).toHaveLength(3);
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    // Made without crypto.randomUUID, which a page that came over plain HTTP does not have.
    expect(seen[0]?.key).toMatch(/^[0-9a-f]{32}$/);
  });

  it('is no change that a proxy has refused, or leads elsewhere: it may have been made', async () => {
    for (const answer of [429, 503, 302]) {
      const { url, seen } = await answering([[answer, { location: '/v1/me' }, '<h1>upstream reset</h1>'], OK]);
      const error = await refusal(impatient({ url }).client.post('/v1/orgs', { body: { name: 'x' } }));
      expect([error.status, error.code, seen.length]).toEqual([answer, 'UNEXPECTED_ANSWER', 1]);
    }
  });

  it('is nothing of somebody who has given up', async () => {
    const { url, seen } = await answering([[503]]);
    const ending = new AbortController();
    const wait = async () => ending.abort(new Error('enough'));
    const call = connect({ url, wait }).get('/v1/me', { signal: ending.signal });
    await expect(call).rejects.toThrow('enough');
    expect(seen).toHaveLength(1);
    const during = new AbortController();
    let sent = 0;
    const fetch = async ({ signal }: Request): Promise<Response> => {
      sent += 1;
      during.abort(new Error('enough of it'));
      return Promise.reject(signal.reason as Error);
    };
    const other = impatient({ url, fetch });
    await expect(other.client.get('/v1/me', { signal: during.signal })).rejects.toThrow('enough of it');
    expect([sent, other.waits]).toEqual([1, []]);
  });

  it('waits in real time, and no longer than it is wanted', async () => {
    await realWait(1, new AbortController().signal);
    const ending = new AbortController();
    const waiting = realWait(1e9, ending.signal);
    ending.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(realWait(1e9, ending.signal)).rejects.toThrow('enough');
  });

  it('a page of a proxy is an error that says what to look at', async () => {
    const { url } = await answering([[404, { 'content-type': 'text/html' }, '<h1>nginx</h1>']]);
    const error = await refusal(impatient({ url }).client.get('/v1/me'));
    expect(error).toMatchObject({ status: 404, code: 'UNEXPECTED_ANSWER' });
    expect(error.message).toContain('check that this is the address of a control plane');
  });
});

it('the operations with a key are those of the document', async () => {
  const { paths } = await fetchDocument(test.url);
  const withKey = Object.entries(paths).filter(([, { post }]) =>
    JSON.stringify(post?.parameters ?? []).includes('idempotency-key'),
  );
  // Release 0.2.0 grants credit, and knows no keys there: a client would grant it twice.
  const later = ['/v1/operator/organizations/{id}/credits'];
  expect(withKey.map(([path]) => path).sort()).toEqual([...WITH_IDEMPOTENCY_KEY, ...later].sort());
});

describe('events', () => {
  /** What a client has received; it reads until it is stopped. */
  function following(events: AsyncGenerator<GpurentEvent>): { received: GpurentEvent[]; over: Promise<unknown> } {
    const received: GpurentEvent[] = [];
    const over = (async () => {
      for await (const event of events) received.push(event);
    })().then(
      () => undefined,
      (error: unknown) => error,
    );
    return { received, over };
  }
  const create = (name: string) => client.post('/v1/api-keys', { body: { name } });
  const namesOf = (events: GpurentEvent[]) =>
    events.map((event) => (event.type === 'api_key.created' ? event.data.name : event.type));

  it('come in their order, each once, also where connections are lost', async () => {
    const relay = await Cuttable.to(test.url);
    const ending = new AbortController();
    const { client: other } = impatient({ url: relay.url, token: renter.api.token ?? '' });
    const { received, over } = following(other.events({ signal: ending.signal, types: ['api_key.created'] }));
    await eventually('the stream', () => relay.connections > 0);
    await eventually('a first event', async () => {
      await create('first');
      return received.length > 0;
    });
    const seen = received.length;
    relay.cut();
    await create('second');
    await create('third');
    await eventually('what was missed', () => namesOf(received).includes('third'));
    expect(namesOf(received).slice(-2)).toEqual(['second', 'third']);
    expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
    expect(received.length).toBeGreaterThanOrEqual(seen + 2);
    ending.abort();
    expect(await over).toBeUndefined();
    relay.close();
  });

  it('of a connection that was lost before the first one are not missed', async () => {
    const relay = await Cuttable.to(test.url);
    const ending = new AbortController();
    let isOpen = false;
    const fetch = async (request: Request) => {
      const response = await globalThis.fetch(request);
      isOpen = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
      return response;
    };
    const wait = async () => {
      await create('meanwhile');
    };
    const other = connect({ url: relay.url, token: renter.api.token ?? '', fetch, wait });
    const { received, over } = following(other.events({ signal: ending.signal }));
    await eventually('the stream', () => isOpen);
    relay.cut();
    await eventually('what was missed', () => namesOf(received).includes('meanwhile'));
    ending.abort();
    await over;
    relay.close();
  });

  it('before they are asked for are read from an id on; those of one instance alone', async () => {
    await create('one');
    await create('two');
    const ending = new AbortController();
    const all = following(client.events({ after: '0.0', signal: ending.signal }));
    await eventually('all', () => namesOf(all.received).includes('two'));
    expect(namesOf(all.received).slice(-2)).toEqual(['one', 'two']);
    const agent = await test.host();
    const { id } = await client.post('/v1/instances', {
      body: { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 },
    });
    await statusIs(renter.api, id, 'running');
    const its = following(client.events({ after: '0.0', instanceId: id, signal: ending.signal }));
    await eventually('that it runs', () =>
      its.received.some((event) => event.type === 'instance.status_changed' && event.data.status === 'running'),
    );
    expect(new Set(its.received.map(({ subject }) => subject))).toEqual(new Set([`instances/${id}`]));
    ending.abort();
    await Promise.all([all.over, its.over]);
  });

  it('that do not end are not kept: the connection is given up, and another one made', async () => {
    const ending = new AbortController();
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (stream) => {
        sent += 1;
        stream.enqueue(new TextEncoder().encode(sent === 1 ? 'id: 1.1\ndata: "' : 'x'.repeat(65_536)));
        if (sent === 100) ending.abort();
      },
    });
    const fetch = async () => new Response(endless, { headers: { 'content-type': 'text/event-stream' } });
    const wait = async () => ending.abort();
    const { received, over } = following(
      connect({ url: test.url, fetch, wait }).events({ after: '0.0', signal: ending.signal }),
    );
    expect(await over).toBeUndefined();
    expect([received, sent < 30]).toEqual([[], true]);
  });

  /** The waits of a client that gets these answers; a number: a stream in which nothing happens, that is cut after so many ms. */
  async function waitsAfter(...answers: (number | Response)[]): Promise<{ waits: number[]; error: unknown }> {
    let now = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    const quiet = (ms: number) => {
      let isTold = false;
      const pull = (stream: ReadableStreamDefaultController<Uint8Array>) => {
        if (!isTold) stream.enqueue(new TextEncoder().encode('id: 1.1\n\n'));
        else stream.error(new Error('cut'));
        if (isTold) now += ms;
        isTold = true;
      };
      return new Response(new ReadableStream({ pull }), { headers: { 'content-type': 'text/event-stream' } });
    };
    const ending = new AbortController();
    const waits: number[] = [];
    const wait = async (ms: number) => {
      waits.push(ms);
      if (answers.length === 0) ending.abort();
    };
    const fetch = async () => {
      const answer = answers.shift() ?? 0;
      return typeof answer === 'number' ? quiet(answer) : answer;
    };
    const other = connect({ url: test.url, fetch, wait, attempts: 1 });
    const error = await following(other.events({ after: '1.1', signal: ending.signal })).over;
    clock.mockRestore();
    return { waits, error };
  }

  it('are waited for longer and longer while connections fail, and not where they are only cut', async () => {
    const failing = await waitsAfter(0, 10, 0, 10);
    expect(failing.waits[3]).toBeGreaterThanOrEqual(8_000);
    const cut = await waitsAfter(0, 0, 15_000, 15_000, 15_000);
    expect(cut.waits).toHaveLength(5);
    expect(Math.max(...cut.waits.slice(2))).toBeLessThan(1_500);
  });

  it('go on after a proxy on the way has led elsewhere, unless it did so from the beginning', async () => {
    const elsewhere = () => {
      const answer = new Response('<h1>moved</h1>', { status: 302, headers: { location: '/login' } });
      return Object.defineProperty(answer, 'url', { value: test.url });
    };
    expect(await waitsAfter(15_000, elsewhere(), elsewhere(), 0)).toMatchObject({ error: undefined });
    const { error } = await waitsAfter(elsewhere(), 0);
    expect(error).toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 302 });
  });

  it('go on where a proxy leads elsewhere after the newest event was read, and before the stream', async () => {
    const ending = new AbortController();
    const asked: string[] = [];
    const fetch = async (request: Request) => {
      asked.push(request.headers.get('accept') ?? '');
      if (asked.length !== 2) return globalThis.fetch(request);
      const answer = new Response(null, { status: 302, headers: { location: '/login' } });
      return Object.defineProperty(answer, 'url', { value: test.url });
    };
    const other = connect({ url: test.url, token: renter.api.token ?? '', fetch, wait: async () => undefined });
    const { received, over } = following(other.events({ signal: ending.signal }));
    await eventually('the stream', () => asked.length > 2);
    await eventually('an event', async () => {
      await create('after a redirect');
      return received.length > 0;
    });
    ending.abort();
    expect(await over).toBeUndefined();
  });

  it('end when the caller says so, also after a collection of garbage', async () => {
    const ending = new AbortController();
    const { received, over } = following(client.events({ after: '0.0', signal: ending.signal }));
    await eventually('the first', () => received.length > 0);
    collectGarbage();
    ending.abort();
    expect(await over).toBeUndefined();
  });

  it('end with an error when the credential ends, or when some were deleted', async () => {
    const { key, secret } = await create('follower');
    const withKey = connect({ url: test.url, token: secret });
    const { received, over } = following(withKey.events({ after: '0.0' }));
    await eventually('the first', () => received.length > 0);
    await client.delete('/v1/api-keys/{id}', { params: { path: { id: key.id } } });
    expect(await over).toMatchObject({ code: 'TOKEN_INVALID' });
    const late = following(client.events({ after: '999.1' }));
    expect(await late.over).toBeInstanceOf(EventsExpiredError);
  });
});
