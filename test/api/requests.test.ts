import { fastify } from 'fastify';
import { Type } from 'typebox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formed } from '../../control-plane/http/schema/schemas.js';
import { checkPatterns } from '../../control-plane/http/schema/validation-words.js';
import { validateStrictly } from '../../control-plane/http/schema/validation.js';
import type { InstanceBody } from '../harness/api-client.js';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
let running: string;
let deployment: { offer_id: string; template_id: string; disk_gb: number };
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  const offer_id = await test.offer(await test.host({ gpus: 4 }));
  deployment = { offer_id, template_id: await test.template(), disk_gb: 10 };
  running = (await renter.api.post<InstanceBody>('/v1/instances', deployment)).id;
  await statusIs(renter.api, running, 'running');
});
afterAll(() => test.stop());

interface Refused {
  code: string;
  details?: { path: string; message: string }[];
}

const ask = (path: string, init: RequestInit = {}, token = 'Bearer') =>
  fetch(`${test.url}${path}`, {
    ...init,
    headers: { Authorization: `${token} ${renter.api.token}`, ...(init.headers as Record<string, string>) },
  });

it.each([
  ['DELETE', ''],
  ['POST', '/stop'],
  ['POST', '/start'],
] as const)('what nobody has asked for changes nothing: %s %s', async (method, action) => {
  const before = test.dump();
  const send = (body: unknown) => renter.api.request<Refused>(method, `/v1/instances/${running}${action}`, body);
  const answer = await send({ dry_run: true, force: false });
  expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
  expect(answer.body.details).toEqual([
    { path: 'dry_run', message: 'this field is unknown' },
    { path: 'force', message: 'this field is unknown' },
  ]);
  for (const body of ['["dry_run"]', '"dry_run"', 'true', '1']) expect((await send(body)).status, body).toBe(422);
  const untyped = { method, body: new Blob(['{"dry_run":true}']) };
  expect((await ask(`/v1/instances/${running}${action}`, untyped)).status).toBe(415);
  expect(test.dump()).toEqual(before);
});

it('every object in every body names the fields that it takes', async () => {
  const { paths, components } = await fetchDocument(test.url);
  const openIn = (schema: unknown): unknown[] => {
    if (typeof schema !== 'object' || schema === null) return [];
    const { $ref, properties, additionalProperties } = schema as Record<string, unknown>;
    if (typeof $ref === 'string') return openIn(components.schemas[$ref.split('/').at(-1) ?? '']);
    const own = properties !== undefined && additionalProperties !== false ? [schema] : [];
    return [...own, ...Object.values(schema).flatMap(openIn)];
  };
  const bodies = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map(({ requestBody }) => requestBody),
  );
  expect(bodies.filter(Boolean).length).toBeGreaterThan(15);
  expect(bodies.flatMap(openIn)).toEqual([]);
});

it('an empty body is none', async () => {
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', deployment);
  await statusIs(renter.api, id, 'running');
  expect((await renter.api.request('POST', `/v1/instances/${id}/stop`, {})).status).toBeLessThan(300);
  expect((await renter.api.request('DELETE', `/v1/instances/${id}`)).status).toBeLessThan(300);
});

/** Characters, each written as two escapes. */
const escaped = (count: number) => '\\ud83d\\ude00'.repeat(count);
const post = (path: string, body: string) =>
  ask(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
const longEnvironment = (entries: number) => {
  const key = (index: number) => `${escaped(253)}${String(index).padStart(3, '0')}`;
  return Array.from({ length: entries }, (_, index) => `{"key":"${key(index)}","value":"${escaped(4_096)}"}`).join();
};

it('a deploy may be as long as its fields may be, each character written as two escapes', async () => {
  const { offer_id, template_id } = deployment;
  const ids = `"offer_id":"${offer_id}","template_id":"${template_id}"`;
  const body = `{${ids},"disk_gb":10,"label":"${escaped(64)}","env_overrides":[${longEnvironment(100)}]}`;
  expect(body.length).toBeGreaterThan(5_200_000);
  const answer = await post('/v1/instances', body);
  expect(answer.status).toBe(201);
  const { id } = (await answer.json()) as InstanceBody;
  await statusIs(renter.api, id, 'running');
  await renter.api.delete(`/v1/instances/${id}`);
});

it('and so may a template', async () => {
  const command = Array.from({ length: 100 }, () => `"${escaped(4_096)}"`).join();
  const long = `"readme":"${escaped(65_536)}","onstart":"${escaped(30_000)}","description":"${escaped(1_000)}"`;
  const body = `{"name":"${escaped(64)}","image":"i:1",${long},"command":[${command}],"env":[${longEnvironment(7)}]}`;
  expect(body.length).toBeGreaterThan(6_400_000);
  expect((await post('/v1/templates', body)).status).toBe(201);
});

it.each(['1e2', '+5', '0x10', '%205', '5%20', '5.0', '', 'Infinity', '5&tail=6'])(
  'tail=%s is no number',
  async (tail) => {
    const answer = await renter.api.request<Refused>('GET', `/v1/instances/${running}/logs?tail=${tail}`);
    expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path: 'tail' }] } });
  },
);

it('other numbers in a query string are plain, too, and what is not known there is left alone', async () => {
  for (const [path, name] of [
    ['/v1/billing/spend-daily?days=0x5', 'days'],
    ['/v1/offers?num_gpus=1e0', 'num_gpus'],
    ['/v1/offers?max_price_per_hour_micro=+5', 'max_price_per_hour_micro'],
    ['/v1/billing/transactions?limit=%2B5', 'limit'],
  ] as const) {
    expect(await renter.api.request('GET', path), path).toMatchObject({
      status: 422,
      body: { details: [{ path: name }] },
    });
  }
  const known = await renter.api.request('GET', `/v1/instances/${running}/logs?tail=5&utm_source=0x10`);
  expect(known.status).toBe(200);
});

it('every field that is wrong is named, once', async () => {
  const body = { offer_id: 'x', disk_gb: 5, label: 5, dry_run: true, env_overrides: [{ key: '', value: 1 }] };
  const { body: refused } = await renter.api.request<Refused>('POST', '/v1/instances', body);
  expect(refused.details?.map(({ path }) => path).sort()).toEqual(
    ['disk_gb', 'dry_run', 'env_overrides.0.key', 'env_overrides.0.value', 'label', 'offer_id', 'template_id'].sort(),
  );
});

it('says in words what each field must be, and never shows a pattern', async () => {
  const wordsOf = async (method: string, path: string, body?: unknown) => {
    const { body: refused } = await renter.api.request<Refused & { message: string }>(method, path, body);
    expect(refused.message).not.toMatch(/[\\^]|\[\^|must match|must NOT|\/properties/);
    return Object.fromEntries((refused.details ?? []).map((detail) => [detail.path, detail.message]));
  };
  const env = [{ key: 'A=B', value: 'x\0' }, { key: '' }, { key: 'x'.repeat(257), value: 1 }];
  expect(
    await wordsOf('POST', '/v1/instances', { offer_id: 'x', disk_gb: 5.5, label: 'a\u202eb', env_overrides: env }),
  ).toEqual({
    offer_id: 'must be an id: a UUID',
    template_id: 'this field is required',
    disk_gb: 'must be a whole number',
    label: 'must not contain control characters, invisible characters, or characters that change the direction of text',
    'env_overrides.0.key': 'must contain neither "=" nor the character NUL',
    'env_overrides.0.value': 'must not contain the character NUL',
    'env_overrides.1.key': 'must not be empty',
    'env_overrides.1.value': 'this field is required',
    'env_overrides.2.key': 'must have at most 256 characters',
    'env_overrides.2.value': 'must be text',
  });
  const entries = [
    { action: 'sleep', days: ['monday', 'monday'], at: '24:00' },
    { action: 'stop', days: [], at: '00:00' },
  ];
  expect(await wordsOf('PUT', `/v1/instances/${running}/schedule`, { time_zone: '../etc', entries })).toEqual({
    time_zone: 'must be a time zone of the IANA database, such as Europe/Berlin or UTC',
    'entries.0.action': 'must be start or stop',
    'entries.0.days': 'must not have the same entry twice',
    'entries.0.at': 'must be a time from 00:00 to 23:59, as HH:MM',
    'entries.1.days': 'must have at least 1 entry',
  });
  expect(await wordsOf('GET', '/v1/billing/transactions?limit=0&cursor=%2F')).toEqual({
    limit: 'must be at least 1',
    cursor: 'must be the `next_cursor` of a page of this list',
  });
  expect(await wordsOf('POST', '/v1/auth/sign-in', { email: 'nobody', password: true })).toEqual({
    email: 'must be an email address',
    password: 'must be text',
  });
  expect(await wordsOf('POST', '/v1/api-keys', [])).toEqual({ '': 'must be an object' });
});

it('no schema has a pattern without its words', () => {
  const patterned = Type.Object({ names: Type.Array(Type.String({ pattern: '^a$' })) });
  expect(() => checkPatterns('POST /v1/names', [undefined, patterned])).toThrow('POST /v1/names has the pattern ^a$');
  const app = fastify();
  validateStrictly(app);
  const handler = () => null;
  expect(() => app.post('/names', { schema: { body: patterned } }, handler)).toThrow('no words for people');
  const worded = Type.Object({ name: formed('A name', '^a$', 'be the letter a') });
  expect(() => app.post('/names', { schema: { body: worded } }, handler)).not.toThrow();
});

it('so many wrong fields are named that one can read them, and no longer than that', async () => {
  const fieldsOf = async (count: number, path = '/v1/api-keys', length = 1) => {
    const fields = Array.from({ length: count }, (_, index) => [`${index}`.padEnd(length, 'x'), 0]);
    const { status, body } = await renter.api.request<Refused>('POST', path, Object.fromEntries(fields));
    expect(status).toBe(422);
    return body.details ?? [];
  };
  const instance = `/v1/instances/${running}/stop`;
  expect(await fieldsOf(100)).toHaveLength(20);
  expect(await fieldsOf(100, instance)).toHaveLength(20);
  // Of a body like that only the first is looked for.
  expect(await fieldsOf(10_000)).toHaveLength(1);
  const [long] = await fieldsOf(1, instance, 100_000);
  expect(long?.path).toHaveLength(200);
});

it('a URN is no id, and neither is a long word: what is asked for is not there', async () => {
  const urn = { ...deployment, offer_id: `urn:uuid:${deployment.offer_id}` };
  expect(await renter.api.request('POST', '/v1/instances', urn)).toMatchObject({ status: 422 });
  for (const id of [`urn:uuid:${running}`, 'x'.repeat(8_000)]) {
    const answer = await renter.api.request<Refused>('GET', `/v1/instances/${id}`);
    expect(answer).toMatchObject({ status: 404, body: { code: 'INSTANCE_NOT_FOUND' } });
  }
});

it('ids are the same in capital letters', async () => {
  const id = running.toUpperCase();
  expect((await renter.api.request<InstanceBody>('GET', `/v1/instances/${id}`)).body.id).toBe(running);
  const capital = { ...deployment, offer_id: deployment.offer_id.toUpperCase() };
  const { id: deployed } = await renter.api.post<InstanceBody>('/v1/instances', capital);
  await statusIs(renter.api, deployed, 'running');
  await renter.api.delete(`/v1/instances/${deployed}`);
  const parties = [() => test.lastAgent.roundTrip()];
  await advanceUntil('a charge', { clock: test, stepMs: 60_000, parties }, async () => {
    const { items } = await renter.api.get<{ items: unknown[] }>(`/v1/billing/transactions?instance_id=${id}`);
    return items.length > 0;
  });
});

it('a scheme is one in any letters, and so is an organization', async () => {
  for (const scheme of ['bearer', 'BEARER', 'Bearer  '])
    expect((await ask(`/v1/instances/${running}`, {}, scheme)).status).toBe(200);
  const mine = { 'X-Org-Id': renter.organizationId.toUpperCase() };
  expect((await ask(`/v1/instances/${running}`, { headers: mine })).status).toBe(200);
});

describe('an API key of another organization', () => {
  it.each([
    ['GET', '/v1/nothing'],
    ['POST', '/v1/nothing'],
    ['PUT', '/v1/instances'],
    ['GET', '/v1/instances/%ff'],
    ['GET', '/v1/operator/machines'],
    ['GET', '/v1/operator/nothing'],
    ['POST', '/v1/auth/sign-in'],
  ])('hears so before anything else, and is used: %s %s', async (method, path) => {
    const minted = await renter.api.post<{ secret: string; key: { id: string } }>('/v1/api-keys', { name: 'k' });
    const key = test.api.as(minted.secret);
    test.clock.advance(1_000);
    const { organizationId } = await test.renter(0);
    const refused = await key.in(organizationId).request(method, path);
    expect(refused).toMatchObject({ status: 403, body: { code: 'ORG_MISMATCH' } });
    test.clock.advance(1_000);
    expect((await key.request(method, path)).status).not.toBe(403);
    const { items } = await renter.api.get<{ items: { id: string; last_used_at: string }[] }>('/v1/api-keys');
    const { last_used_at } = items.find(({ id }) => id === minted.key.id) ?? {};
    expect(last_used_at).toBe(new Date(test.clock.now()).toISOString());
  });

  it('a credential that is none is told of an address that is none', async () => {
    for (const token of ['svc_', `svc_${'0'.repeat(48)}`])
      expect((await test.api.as(token).request('GET', '/v1/nothing')).status).toBe(404);
  });
});

it('who has no credential is told which to send', async () => {
  const answer = await fetch(`${test.url}/v1/instances`);
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toBe('Bearer');
});

it('a request is the same in whatever order its fields come', async () => {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'one-of-its-own' };
  const deploy = (fields: [string, unknown][]) =>
    ask('/v1/instances', { method: 'POST', headers, body: JSON.stringify(Object.fromEntries(fields)) });
  const fields = Object.entries({ ...deployment, env_overrides: [{ key: 'A', value: 'b' }] });
  const first = await deploy(fields);
  const overrides = [{ value: 'b', key: 'A' }];
  const again = await deploy(Object.entries({ env_overrides: overrides, ...deployment }).reverse());
  expect([first.status, again.status]).toEqual([201, 201]);
  const [{ id }, replayed] = (await Promise.all([first.json(), again.json()])) as [InstanceBody, InstanceBody];
  expect(replayed.id).toBe(id);
  const other = await deploy([...fields, ['label', 'another']]);
  expect(other.status).toBe(409);
});

describe('a body that nobody can have meant', () => {
  const json = { 'Content-Type': 'application/json' };
  const send = async (body: Uint8Array | string, headers: Record<string, string> = json) => {
    const answer = await ask('/v1/api-keys', { method: 'POST', headers, body });
    return { status: answer.status, body: (await answer.json()) as Refused & { message: string } };
  };
  const named = (bytes: number[]) => Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')]);

  it.each([
    ['a byte of Latin-1', named([0x6b, 0xe9]), 'UTF-8'],
    ['a character that is cut off', named([0xf0, 0x9f, 0x98]), 'UTF-8'],
    ['half of a pair, as bytes', named([0xed, 0xa0, 0xbd]), 'UTF-8'],
    ['half of a pair, as an escape', '{"name":"a\\ud83d"}', 'half of a character'],
    ['half of a pair in a name', '{"name":"a","\\uDE00":1}', 'half of a character'],
    ['100,000 lists, each in the one before', '['.repeat(100_000) + ']'.repeat(100_000), 'nested too deeply'],
    ['40,000 objects, each in the one before', '{"":'.repeat(40_000), 'nested too deeply'],
    ['100,000 values', `{"name":[${'0,'.repeat(100_000)}0]}`, 'too many values'],
    ['25,000 names', `{${Array.from({ length: 25_000 }, (_, at) => `"${at}":0`).join()}}`, 'too many values'],
  ])('is refused before it is looked at: %s', async (_, body, why) => {
    const keys = () => renter.api.get('/v1/api-keys');
    const before = await keys();
    const answer = await send(body);
    expect(answer).toMatchObject({ status: 400, body: { code: 'MALFORMED_JSON' } });
    expect(answer.body.message).toContain(why);
    expect(await keys()).toEqual(before);
  });

  it('is none because of brackets in a text, or of both halves of a character', async () => {
    expect(await send(`{"name":"${'[{,\\"'.repeat(10)}\\ud83d\\ude00"}`)).toMatchObject({ status: 201 });
  });

  it('is refused if it is encoded, and says so', async () => {
    const body = '{"name":"encoded"}';
    for (const encoding of ['gzip', 'br', 'identity, gzip', 'none-such']) {
      const answer = await send(body, { ...json, 'Content-Encoding': encoding });
      expect(answer, encoding).toMatchObject({ status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } });
      expect(answer.body.message).toContain('Content-Encoding');
    }
    expect((await send(body, { ...json, 'Content-Encoding': 'Identity' })).status).toBe(201);
    expect((await ask('/v1/api-keys', { headers: { 'Content-Encoding': 'gzip' } })).status).toBe(200);
  });
});
