import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  AGE_MS,
  IDLE_MS,
  MOST_CALLS,
  MOST_IN_ALL,
  MOST_OF_KEY,
  McpSessions,
  type Session,
} from '../../control-plane/http/mcp/sessions.js';
import type { Holder } from '../../control-plane/domain/shared-total.js';
import { ApiClient } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { ManualClock } from '../harness/manual-clock.js';
import { McpWorld } from './mcp-world.js';

let world: McpWorld;
beforeAll(async () => {
  world = await McpWorld.make();
});
afterEach(() => world.closeClients());
afterAll(() => world.stop());

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: {
      name: 'test',
      version: '1',
    },
  },
};
const LIST = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
const ACCEPT = { Accept: 'application/json, text/event-stream' };
const BY_SESSION = 'Mcp-Session-Id';

/** A client whose answers are not compared with the document of the API: it has no /mcp. */
const bare = (secret?: string) => new ApiClient(world.test.url, secret);

/** Sends a message as it is. */
async function send(secret: string | undefined, body: unknown, headers: Record<string, string> = {}) {
  const {
    status,
    headers: answered,
    body: text,
  } = await bare(secret).request('POST', '/mcp', body, { ...ACCEPT, ...headers });
  return { status, sessionId: answered.get(BY_SESSION) ?? '', body: text as { code?: string } };
}

async function opened(secret: string): Promise<string> {
  const { status, sessionId } = await send(secret, INITIALIZE);
  expect(status).toBe(200);
  return sessionId;
}

const inSession = async (secret: string, id: string) => (await send(secret, LIST, { [BY_SESSION]: id })).status;

/** A call that waits for a person; `rest` is what comes of its answer after the question. */
async function asking(secret: string, known?: string) {
  const capable = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { elicitation: {} } } };
  const sessionId = known ?? (await send(secret, capable)).sessionId;
  const leaving = new AbortController();
  const { body } = await fetch(`${world.test.url}/mcp`, {
    method: 'POST',
    headers: {
      ...ACCEPT,
      'Content-Type': 'application/json',
      Authorization: `Bearer ${secret}`,
      [BY_SESSION]: sessionId,
    },
    body: JSON.stringify({
      ...LIST,
      id: randomUUID(),
      method: 'tools/call',
      params: { name: 'deploy', arguments: world.deploy },
    }),
    signal: leaving.signal,
  });
  const reader = (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('elicitation/create')) text += (await reader.read()).value ?? '';
  const questionId = Number(/"id":(\d+)/.exec(text)?.[1]);
  return { sessionId, questionId, leave: () => leaving.abort(), rest: restOf(reader) };
}

async function restOf(reader: ReadableStreamDefaultReader<string>): Promise<string> {
  let text = '';
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
  } catch {
    // The connection was cut.
  }
  return text;
}

describe('who may come in', () => {
  it('only API keys: nobody else, no person, and no cookie', async () => {
    const { secret } = await world.key();
    const { token } = world.renter.api;
    expect(await send(undefined, INITIALIZE)).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
    expect(await send('svc_none', INITIALIZE)).toMatchObject({ status: 401 });
    expect(await send(token, INITIALIZE)).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
    const marked = { 'X-Same-Origin': '1', 'Sec-Fetch-Site': 'same-origin' };
    for (const credential of [token ?? '', secret])
      expect(
        (await send(undefined, INITIALIZE, { Cookie: `__Host-gpurent=${credential}`, ...marked })).status,
      ).toBeGreaterThan(400);
    // A cookie beside a key changes nothing.
    expect(await send(secret, INITIALIZE, { Cookie: `__Host-gpurent=${token ?? ''}` })).toMatchObject({ status: 200 });
  });

  it('no page of another origin, and nobody by a name that is not its own', async () => {
    const { secret } = await world.key();
    for (const Origin of ['https://evil.example', 'null', world.test.url])
      expect(await send(secret, INITIALIZE, { Origin })).toMatchObject({
        status: 403,
        body: { code: 'COOKIE_REFUSED' },
      });
    const url = 'https://gpus.example';
    await world.restart({ publicUrl: url });
    expect(await send(secret, INITIALIZE, { Origin: url })).toMatchObject({ status: 200 });
    expect(await send(secret, INITIALIZE, { Origin: 'https://evil.example' })).toMatchObject({ status: 403 });
    expect(await statusFor('gpus.example', secret)).toBe(200);
    expect(await statusFor('gpus.example:8080', secret)).toBe(200);
    expect(await statusFor('evil.example', secret)).toBe(403);
  });

  it('a session is its key’s: another key gets what an unknown session gets', async () => {
    const [one, other] = [await world.key(), await world.key()];
    const id = await opened(one.secret);
    expect(await inSession(one.secret, id)).toBe(200);
    expect(await inSession(other.secret, id)).toBe(404);
    expect(await inSession(one.secret, 'unknown')).toBe(404);
    expect(await send(one.secret, LIST)).toMatchObject({ status: 404, body: { code: 'SESSION_NOT_FOUND' } });
    const end = (secret: string) => bare(secret).request('DELETE', '/mcp', undefined, { [BY_SESSION]: id });
    expect((await end(other.secret)).status).toBe(404);
    expect((await end(one.secret)).status).toBe(204);
    expect(await inSession(one.secret, id)).toBe(404);
  });
});

describe('what ends a session', () => {
  it('the end of its key, also while a person is asked: the answer ends, and nothing is done', async () => {
    const { id, secret } = await world.key();
    const { rest } = await asking(secret);
    await world.renter.api.delete(`/v1/api-keys/${id}`);
    expect(await rest).not.toContain('"result"');
    expect(await world.instances()).toEqual([]);
  });

  it('over the protocol without sessions, an agreement that comes with a key that has ended does nothing', async () => {
    const { id, secret } = await world.key();
    const agent = await world.client({
      secret,
      era: 'auto',
      answers: async () => {
        await world.renter.api.delete(`/v1/api-keys/${id}`);
        return 'accept' as const;
      },
    });
    await expect(agent.call('deploy', world.deploy)).rejects.toThrow('TOKEN_INVALID');
    expect(agent.questions).toHaveLength(1);
    expect(await world.instances()).toEqual([]);
  });

  it('the end of the control plane, although a person is being asked', async () => {
    const { rest } = await asking((await world.key()).secret);
    await world.restart();
    expect(await rest).not.toContain('"result"');
    expect(await world.instances()).toEqual([]);
  });

  it('not that a client goes away while a person is asked: only the call ends', async () => {
    const { secret } = await world.key();
    const { sessionId, questionId, leave, rest } = await asking(secret);
    const calls = await Promise.all(Array.from({ length: MOST_CALLS - 1 }, () => asking(secret, sessionId)));
    expect(await inSession(secret, sessionId)).toBe(503);
    leave();
    await rest;
    await eventually('the call to end', async () => (await inSession(secret, sessionId)) === 200);
    // Nobody waits for this answer any more. Otherwise it would deploy while the next requests are answered.
    const agreed = { jsonrpc: '2.0', id: questionId, result: { action: 'accept', content: {} } };
    expect((await send(secret, agreed, { [BY_SESSION]: sessionId })).status).toBe(202);
    for (let count = 0; count < 10; count += 1) expect(await world.instances()).toEqual([]);
    for (const call of calls) call.leave();
    expect(await world.instances()).toEqual([]);
  });

  it('half an hour without a request, a day in all, and a ninth session of its key', async () => {
    const { secret } = await world.key();
    const id = await opened(secret);
    world.test.clock.advance(IDLE_MS - 1);
    expect(await inSession(secret, id)).toBe(200);
    world.test.clock.advance(IDLE_MS);
    expect(await inSession(secret, id)).toBe(404);
    const old = await opened(secret);
    for (let age = 0; age < AGE_MS - IDLE_MS; age += IDLE_MS - 1) {
      expect(await inSession(secret, old)).toBe(200);
      world.test.clock.advance(IDLE_MS - 1);
    }
    world.test.clock.advance(IDLE_MS);
    expect(await inSession(secret, old)).toBe(404);
    const ids: string[] = [];
    for (let count = 0; count < MOST_OF_KEY; count += 1) ids.push(await opened(secret));
    expect(await inSession(secret, ids[0] ?? '')).toBe(200);
    const ninth = await opened(secret);
    expect(await Promise.all([...ids, ninth].map((each) => inSession(secret, each)))).toEqual([
      200,
      404,
      ...Array<number>(7).fill(200),
    ]);
  });
});

/** What JSON-RPC answers to a text that is no message. */
const noMessage = (status: number, number: number, code: string) => ({
  status,
  body: { jsonrpc: '2.0', id: null, error: { code: number, data: { code } } },
});

it('bounds the size of a message, takes one at a time, and only by POST', async () => {
  const { secret } = await world.key();
  const long = { ...LIST, params: { padding: 'x'.repeat(65 * 1024) } };
  expect(await send(secret, long)).toMatchObject(noMessage(413, -32_600, 'PAYLOAD_TOO_LARGE'));
  expect(await send(secret, [LIST, LIST])).toMatchObject(noMessage(422, -32_600, 'VALIDATION_FAILED'));
  expect(await send(secret, { ...LIST, jsonrpc: '1.0' })).toMatchObject({ status: 422 });
  expect((await bare(secret).request('GET', '/mcp', undefined, ACCEPT)).status).toBe(405);
});

it.each([
  [
    'nested deeply',
    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
  ],
  ['nested deeply in objects', `{"jsonrpc":"2.0","params":${'{"a":'.repeat(10_000)}0${'}'.repeat(10_000)}}`],
  ['with many values', `{"jsonrpc":"2.0","id":1,"method":"initialize","params":[${'0,'.repeat(25_000)}0]}`],
  ['without an end', '{"jsonrpc":"2.0","id":1'],
])('a message %s is none, and is told so as JSON-RPC does', async (_, body) => {
  const { secret } = await world.key();
  expect(await send(secret, body)).toMatchObject(noMessage(400, -32_700, 'MALFORMED_JSON'));
  expect(await send(secret, LIST)).not.toMatchObject({ status: 500 });
});

describe('the limits of all sessions', () => {
  const session = (id: string, keyId: string, ended: string[], holder?: Holder): Session =>
    ({
      id,
      keyId,
      holder: holder ?? { hasPaid: true, person: keyId, network: '' },
      changedBy: [],
      address: '',
      isStillAdmitted: () => true,
      server: { close: async () => void ended.push(id) },
    }) as unknown as Session;

  it('one more than fit ends the one that was used longest ago, but none in which somebody waits', () => {
    const ended: string[] = [];
    const sessions = new McpSessions(new ManualClock());
    const add = (id: string) => sessions.add(session(id, `key of ${id}`, ended));
    const call = (id: string) => sessions.beginCall(sessions.find(id, `key of ${id}`));
    for (let count = 0; count < MOST_IN_ALL; count += 1) add(`s${count}`);
    call('s0');
    const endCall = call('s1');
    add('more');
    expect(ended).toEqual(['s2']);
    endCall();
    for (let count = 3; count < MOST_IN_ALL; count += 1) call(`s${count}`);
    call('more');
    add('still more');
    expect(ended).toEqual(['s2', 's1']);
    call('still more');
    expect(() => add('too many')).toThrow('calls wait in all of them');
    sessions.endAll();
    expect(sessions.count).toBe(0);
    expect(() => add('late')).toThrow('stopping');
  });

  it('a free account that opens as many as it can ends its own, and nobody else loses any', () => {
    const ended: string[] = [];
    const sessions = new McpSessions(new ManualClock());
    const free = (person: string) => ({ hasPaid: false, person, network: person });
    for (let count = 0; count < 100; count += 1) sessions.add(session(`p${count}`, `paid ${count}`, ended));
    for (let count = 0; count < 20; count += 1)
      sessions.add(session(`f${count}`, `free ${count}`, ended, free(`${count}`)));
    for (let key = 0; key < 34; key += 1)
      for (let count = 0; count < MOST_OF_KEY; count += 1)
        sessions.add(session(`a${key}.${count}`, `key ${key}`, ended, free('attacker')));
    expect(ended.filter((id) => !id.startsWith('a'))).toEqual([]);
    expect(sessions.count).toBe(100 + MOST_IN_ALL / 2);
    sessions.add(session('f20', 'free 20', ended, free('20')));
    for (let count = 100; count < 200; count += 1) sessions.add(session(`p${count}`, `paid ${count}`, ended));
    expect(ended.filter((id) => !id.startsWith('a'))).toEqual([]);
    expect(sessions.count).toBe(MOST_IN_ALL);
  });

  it('a session waits for eight answers at once', () => {
    const sessions = new McpSessions(new ManualClock());
    const one = session('one', 'key', []);
    sessions.add(one);
    const ends = Array.from({ length: MOST_CALLS }, () => sessions.beginCall(one));
    expect(() => sessions.beginCall(one)).toThrow('wait for their answer');
    ends[0]?.();
    expect(() => sessions.beginCall(one)).not.toThrow();
  });
});

/** fetch would not send another Host. */
function statusFor(host: string, secret: string): Promise<number> {
  const headers = { ...ACCEPT, host, authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${world.test.url}/mcp`, { method: 'POST', headers }, (answer) => {
      answer.resume().once('close', () => resolve(answer.statusCode ?? 0));
    });
    request.once('error', reject).end(JSON.stringify(INITIALIZE));
  });
}
