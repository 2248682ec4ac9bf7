import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';

let test: TestControlPlane;
let renter: Renter;
let other: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  [renter, other] = [await test.renter(), await test.renter()];
});
afterAll(() => test.stop());

interface TemplateBody {
  id: string;
  hash_id: string;
  name: string;
  visibility: string;
  env: { key: string; value: string | null; secret: boolean }[];
  [field: string]: unknown;
}

const secret = { key: 'TOKEN', value: 'very secret', secret: true };

function create(by: Renter, fields: Record<string, unknown> = {}): Promise<TemplateBody> {
  return by.api.post<TemplateBody>('/v1/templates', { name: 'Mine', image: 'mine:1', ...fields });
}

async function environmentOf(template_id: string, by: Renter): Promise<Record<string, string>> {
  const agent = await test.host({ automatic: false });
  await by.api.post<InstanceBody>('/v1/instances', { offer_id: await test.offer(agent), template_id, disk_gb: 10 });
  const { running } = await eventually('the command', () => agent.held[0]);
  return Object.fromEntries(running?.spec.env.map(({ key, value }) => [key, value]) ?? []);
}

describe('a public template', () => {
  it('says whose it is', async () => {
    const own = await create(renter, { name: 'For everybody', visibility: 'public' });
    const { name } = await renter.api.get<{ name: string }>('/v1/orgs/current');
    expect(own).toMatchObject({ publisher: name, is_own: true });
    // A name says nothing: others can have it, too.
    await other.api.request('PATCH', '/v1/orgs/current', { name });
    expect(await other.api.get(`/v1/templates/${own.id}`)).toMatchObject({ publisher: name, is_own: false });
    expect(await renter.api.get(`/v1/templates/${own.id}`)).toMatchObject({ is_own: true });
    const { items } = await other.api.get<{ items: TemplateBody[] }>('/v1/templates');
    expect(items.find(({ id }) => id === own.id)).toMatchObject({ publisher: name, is_own: false });
    expect(items.filter(({ visibility }) => visibility !== 'public').every((one) => one['publisher'] === null)).toBe(
      true,
    );
  });

  it('is not called like one of the system, nor so that it looks like it', async () => {
    await test.operator.post('/v1/operator/templates', { name: 'Official PyTorch', image: 'system:1' });
    for (const name of [
      'Official PyTorch',
      'OFFICIAL-PYTORCH',
      'Оfficial РyTorch',
      'Official  PyTоrch!',
      '0fficial PyTorch',
    ]) {
      const answer = await renter.api.request('POST', '/v1/templates', { name, image: 'mine:1', visibility: 'public' });
      expect(answer, name).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    }
    const own = await create(renter, { name: 'Official PyTorch' });
    const patch = await renter.api.request('PATCH', `/v1/templates/${own.id}`, { visibility: 'public' });
    expect(patch.status).toBe(422);
  });

  it('is ended by an operator, who may end anybody’s', async () => {
    const own = await create(renter, { name: 'Abusive', visibility: 'public' });
    expect((await other.api.request('DELETE', `/v1/operator/templates/${own.id}`)).status).toBe(404);
    expect((await renter.api.request('GET', `/v1/templates/${own.id}`)).status).toBe(200);
    expect((await test.operator.request('DELETE', `/v1/operator/templates/${own.id}`)).status).toBe(204);
    expect((await renter.api.request('GET', `/v1/templates/${own.id}`)).status).toBe(404);
    const { items } = await test.operator.get<{ items: { action: string; subject: string }[] }>(
      '/v1/operator/audit-log',
    );
    expect(items).toContainEqual(expect.objectContaining({ action: 'template.deactivate', subject: own.id }));
  });
});

describe('a template of an organization', () => {
  it('is its own: seen, changed and deployed by nobody else', async () => {
    const template = await create(renter, { env: [secret, { key: 'A', value: '1', secret: false }] });
    expect(template).toMatchObject({ visibility: 'organization', mode: ['ssh'], ssh_user: 'root', recommended: false });
    expect(JSON.stringify(template)).not.toContain('very secret');
    for (const [method, path] of [
      ['GET', `/v1/templates/${template.id}`],
      ['GET', `/v1/templates/by-hash/${template.hash_id}`],
      ['PATCH', `/v1/templates/${template.id}`],
      ['DELETE', `/v1/templates/${template.id}`],
      ['POST', `/v1/templates/${template.id}/duplicate`],
    ] as const) {
      const body = method === 'PATCH' ? { name: 'Theirs' } : undefined;
      const answer = await other.api.request(method, path, body);
      expect(answer, path).toMatchObject({ status: 404, body: { code: 'TEMPLATE_NOT_FOUND' } });
    }
    expect(await environmentOf(template.id, renter)).toMatchObject({ TOKEN: 'very secret', A: '1' });
  });

  it('keeps a secret that is sent back as it is shown, and changes it when it is given', async () => {
    const { id, hash_id } = await create(renter, { env: [secret] });
    const shown = await renter.api.get<TemplateBody>(`/v1/templates/${id}`);
    const patch = async (fields: Record<string, unknown>) =>
      (await renter.api.request<TemplateBody>('PATCH', `/v1/templates/${id}`, fields)).body;
    const kept = await patch({ env: shown.env, command: ['run'] });
    expect(kept.hash_id).not.toBe(hash_id);
    expect((await environmentOf(id, renter))['TOKEN']).toBe('very secret');
    await patch({ env: [{ ...secret, value: 'changed' }] });
    expect((await environmentOf(id, renter))['TOKEN']).toBe('changed');
    expect(await patch({ name: 'Renamed' })).toMatchObject({ name: 'Renamed', command: ['run'] });
  });

  it('that is deactivated is gone for new deploys', async () => {
    const { id } = await create(renter);
    expect((await renter.api.request('DELETE', `/v1/templates/${id}`)).status).toBe(204);
    expect((await renter.api.request('GET', `/v1/templates/${id}`)).status).toBe(404);
    expect((await renter.api.request('DELETE', `/v1/templates/${id}`)).status).toBe(404);
  });

  it.each([
    [{ recommended: true }, 'recommended'],
    [{ mode: ['vnc'] }, 'mode.0'],
    [{ ssh_user: 'Root!' }, 'ssh_user'],
    [{ ports: [{ port: 0 }] }, 'ports.0.port'],
    [{ env: [{ key: 'A=B', value: 'x' }] }, 'env.0.key'],
  ])('with %j is refused, naming %s', async (fields, path) => {
    const before = test.dump();
    const answer = await renter.api.request('POST', '/v1/templates', { name: 'x', image: 'x', ...fields });
    expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path }] } });
    expect(test.dump()).toEqual(before);
  });
});

describe('a copy', () => {
  it('belongs to who made it, runs the same, and takes no registry password along', async () => {
    const registry = { username: 'u', password: 'p' };
    const system = await test.operator.post<TemplateBody>('/v1/operator/templates', {
      name: 'System',
      image: 'registry.test/private:1',
      registry,
      recommended: true,
    });
    const { secret: token } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'script' });
    const script = test.api.as(token);
    const copy = await script.post<TemplateBody>(`/v1/templates/${system.id}/duplicate`);
    expect(copy).toMatchObject({
      visibility: 'organization',
      hash_id: system.hash_id,
      registry_private: false,
      recommended: false,
    });
    const own = await create(renter, { registry });
    expect(await script.post(`/v1/templates/${own.id}/duplicate`)).toMatchObject({ registry_private: true });
    const listed = await renter.api.get<{ items: TemplateBody[] }>('/v1/templates?tab=organization&mode=ssh');
    expect(listed.items.map(({ id }) => id)).toContain(copy.id);
    expect(await script.request('PATCH', `/v1/templates/${copy.id}`, { name: 'x' })).toMatchObject({ status: 401 });
  });
});

it('the system’s templates are the operators’ to read and to change', async () => {
  const { id } = await test.operator.post<TemplateBody>('/v1/operator/templates', { name: 'System', image: 'x:1' });
  expect((await renter.api.request('PATCH', `/v1/templates/${id}`, { name: 'x' })).status).toBe(404);
  const changed = await test.operator.request('PATCH', `/v1/operator/templates/${id}`, { coming_soon: true });
  expect(changed.body).toMatchObject({ coming_soon: true, name: 'System', image: 'x:1' });
  const { id: mine } = await create(renter);
  expect((await test.operator.request('GET', `/v1/operator/templates/${mine}`)).status).toBe(404);
  expect(await test.operator.get(`/v1/operator/templates/${id}`)).toMatchObject({
    name: 'System',
    visibility: 'system',
  });
  const { items } = await test.operator.get<{ items: TemplateBody[] }>('/v1/operator/templates');
  expect(items.map((template) => template.id)).toContain(id);
  expect(items.every(({ visibility }) => visibility === 'system')).toBe(true);
  expect((await test.operator.request('PATCH', `/v1/operator/templates/${mine}`, { name: 'x' })).status).toBe(404);
  expect((await test.operator.request('DELETE', `/v1/operator/templates/${id}`)).status).toBe(204);
});

describe('a public template', () => {
  it('can be seen, deployed and copied by everybody, and changed by its owner alone', async () => {
    const other = await test.renter();
    const mine = { name: 'Shared', image: 'shared:1', visibility: 'public' };
    const { id } = await renter.api.post<{ id: string }>('/v1/templates', mine);
    expect(await other.api.get(`/v1/templates/${id}`)).toMatchObject({ id, visibility: 'public' });
    const { items } = await other.api.get<{ items: { id: string }[] }>('/v1/templates?tab=public');
    expect(items.map((template) => template.id)).toContain(id);
    expect((await other.api.request('PATCH', `/v1/templates/${id}`, { name: 'Mine' })).status).toBe(404);
    expect(await other.api.post(`/v1/templates/${id}/duplicate`)).toMatchObject({ visibility: 'organization' });
    const changed = await renter.api.request('PATCH', `/v1/templates/${id}`, { visibility: 'organization' });
    expect(changed.body).toMatchObject({ visibility: 'organization' });
    expect((await other.api.request('GET', `/v1/templates/${id}`)).status).toBe(404);
  });

  it('cannot hold secret values, which whoever deploys it would read', async () => {
    const secret = { env: [{ key: 'TOKEN', value: 'x', secret: true }] };
    const before = test.dump();
    const mine = { name: 'Shared', image: 'shared:1', visibility: 'public', ...secret };
    expect((await renter.api.request('POST', '/v1/templates', mine)).body).toMatchObject({ code: 'VALIDATION_FAILED' });
    expect(test.dump()).toEqual(before);
    const { id } = await renter.api.post<{ id: string }>('/v1/templates', { ...mine, visibility: 'organization' });
    expect((await renter.api.request('PATCH', `/v1/templates/${id}`, { visibility: 'public' })).status).toBe(422);
  });
});

it.each([
  '../info?x=',
  '../127.0.0.1:2375/info?x=',
  'get?names=debian&x=',
  'debian:1?x=',
  'a/../b',
  'https://registry.example.com/a',
  'user:password@registry.example.com/a',
  'a1'.repeat(32),
])('an image that is named %s is refused, when a template is made and when it is changed', async (image) => {
  const refusal = {
    status: 422,
    body: { code: 'VALIDATION_FAILED', details: [expect.objectContaining({ path: 'image' })] },
  };
  expect(await renter.api.request('POST', '/v1/templates', { name: 'Mine', image })).toMatchObject(refusal);
  const { id } = await create(renter);
  expect(await renter.api.request('PATCH', `/v1/templates/${id}`, { image })).toMatchObject(refusal);
  expect(await renter.api.get(`/v1/templates/${id}`)).toMatchObject({ image: 'mine:1' });
});

it('the password of a registry goes to no other one, whatever the image becomes', async () => {
  const registry = { username: 'me', password: 'the password of a registry' };
  const { id } = await create(renter, { image: 'one.example.com/a:1', registry });
  const change = (fields: object) => renter.api.request<TemplateBody>('PATCH', `/v1/templates/${id}`, fields);
  expect((await change({ image: 'one.example.com/b:2' })).body).toMatchObject({ registry_private: true });
  expect((await change({ image: 'two.example.com/b:2' })).body).toMatchObject({ registry_private: false });
  expect((await change({ image: 'one.example.com/b:2' })).body).toMatchObject({ registry_private: false });
  expect((await change({ image: 'three.example.com/b', registry })).body).toMatchObject({ registry_private: true });
});

describe('the list', () => {
  interface Page {
    items: TemplateBody[];
    next_cursor?: string | null;
  }
  const listed = async (by: Renter, query: Record<string, string>) =>
    (await by.api.get<Page>(`/v1/templates?${new URLSearchParams(query).toString()}`)).items;

  it('is searched beyond a slice, page by page, and no page but the last is short', async () => {
    const maker = await test.renter();
    const wanted = { name: 'zz Needle', description: 'a Stack of hay', image: 'needle:1', visibility: 'public' };
    for (let index = 0; index < 3; index++) await create(maker, wanted);
    const { store } = test.core.platform;
    const row = store.transact((tx) =>
      tx.get(query.selectFrom('templates').selectAll().where('name', '=', wanted.name)),
    );
    if (!row) throw new Error('there is no template');
    const hay = { ...row, name: 'hay', description: '', image: 'hay:1' };
    store.transact((tx) => {
      for (let index = 0; index < 500; index++)
        tx.run(query.insertInto('templates').values({ ...hay, id: randomUUID() }));
    });
    const words = 'NEEDLE stack';
    expect(await listed(other, { words })).toHaveLength(3);
    const first = await other.api.get<Page>(`/v1/templates?${new URLSearchParams({ words, limit: '2' }).toString()}`);
    expect(first.items.map(({ name }) => name)).toEqual([wanted.name, wanted.name]);
    const rest = { words, limit: '2', cursor: first.next_cursor ?? '' };
    expect(await other.api.get<Page>(`/v1/templates?${new URLSearchParams(rest).toString()}`)).toMatchObject({
      items: [{ name: wanted.name }],
      next_cursor: null,
    });
    expect(await listed(other, { words: 'needle without' })).toEqual([]);
  });

  it('has under `own` what the organization has made, published or not', async () => {
    const maker = await test.renter();
    await create(maker, { name: 'b', visibility: 'public' });
    await create(maker, { name: 'a' });
    expect((await listed(maker, { tab: 'own' })).map(({ name }) => name)).toEqual(['a', 'b']);
    expect((await listed(maker, { tab: 'organization' })).map(({ name }) => name)).toEqual(['a']);
    expect(await listed(other, { tab: 'own' })).not.toContainEqual(expect.objectContaining({ name: 'b' }));
  });
});
