import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { TEMPLATES_A_RUN } from '../../control-plane/services/catalogue/ended-templates.js';
import { MOST_BYTES, MOST_PUBLIC_BYTES } from '../../control-plane/services/catalogue/template-room.js';
import { openEnvironment } from '../../control-plane/services/catalogue/stored-template.js';
import type { Row } from '../../control-plane/store/schema.js';
import { query, rowById } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

/** A template with something in every field that can be long. */
const LONG = {
  name: 'Mine',
  image: 'registry.test/mine:1',
  description: 'long',
  readme: 'r'.repeat(1e3),
  onstart: 'date',
  command: ['run', 'x'.repeat(1e3)],
  env: [
    {
      key: 'A',
      value: '1',
      secret: false,
    },
    {
      key: 'TOKEN',
      value: 'very secret',
      secret: true,
    },
  ],
  ports: [{ port: 8080 }],
  registry: {
    username: 'u',
    password: 'p',
  },
};

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

const store = () => test.core.platform.store;
const rowOf = (id: string) => store().transact((tx) => tx.get(rowById('templates', id)));
const create = async (fields: object = LONG) => (await renter.api.post<{ id: string }>('/v1/templates', fields)).id;
const deactivate = (id: string) => renter.api.request('DELETE', `/v1/templates/${id}`);

async function deployed(template_id: string): Promise<InstanceBody> {
  const body = { offer_id: await test.offer(await test.host()), template_id, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  return statusIs(renter.api, id, 'running');
}

/** As an earlier release deactivated it: the row stays as it was. */
function deactivateAsBefore(ids: readonly string[], at: number): void {
  store().transact((tx) =>
    tx.run(
      query
        .updateTable('templates')
        .set({ deactivated_at: at })
        .where('id', 'in', [...ids]),
    ),
  );
}

function isEmpty(row: Row<'templates'> | undefined): void {
  expect(row).toMatchObject({ name: 'Mine', description: '', readme: null, onstart: null, command: '[]', ports: '[]' });
  expect(row).toMatchObject({ registry_encrypted: null, hash_id: '' });
  expect(row && openEnvironment(test.core.platform.encryption, row.env_encrypted)).toEqual([]);
}

describe('a template that is deactivated', () => {
  it('is deleted if no instance was deployed from it', async () => {
    const id = await create();
    expect((await deactivate(id)).status).toBe(204);
    expect(rowOf(id)).toBe(undefined);
    expect(await deactivate(id)).toMatchObject({ status: 404, body: { code: 'TEMPLATE_NOT_FOUND' } });
  });

  it('leaves no more than its name to instances, which have a copy and go on', async () => {
    const id = await create();
    const before = await deployed(id);
    expect((await deactivate(id)).status).toBe(204);
    isEmpty(rowOf(id));
    expect(await renter.api.get(`/v1/instances/${before.id}`)).toMatchObject({ template: before['template'] });
    await renter.api.post(`/v1/instances/${before.id}/stop`);
    await statusIs(renter.api, before.id, 'stopped');
    await renter.api.post(`/v1/instances/${before.id}/start`);
    await statusIs(renter.api, before.id, 'running');
    await renter.api.delete(`/v1/instances/${before.id}`);
    await statusIs(renter.api, before.id, 'destroyed');
    expect(await renter.api.get(`/v1/instances/${before.id}`)).toMatchObject({ template: before['template'] });
  });

  it('is ended the same by an operator who takes it down', async () => {
    const id = await create({ ...LONG, registry: null, env: [], visibility: 'public' });
    expect((await test.operator.request('DELETE', `/v1/operator/templates/${id}`)).status).toBe(204);
    expect(rowOf(id)).toBe(undefined);
  });

  it('by an earlier release is ended, too, so many in one run', async () => {
    const ids: string[] = [];
    for (let count = 0; count < TEMPLATES_A_RUN + 3; count++) ids.push(await create());
    const named = await create();
    await deployed(named);
    const [at, later] = [test.clock.now(), test.clock.now() + 1];
    deactivateAsBefore(ids, at);
    deactivateAsBefore([named], later);
    const left = () => ids.filter((id) => rowOf(id)).length;
    test.advance(MINUTE_MS);
    expect(left()).toBe(3);
    test.advance(1_000);
    expect(left()).toBe(0);
    isEmpty(rowOf(named));
    expect(rowOf(named)?.deactivated_at).toBe(later);
    // What is empty is not looked at again.
    const before = test.dump()['templates'];
    test.advance(MINUTE_MS);
    expect(test.dump()['templates']).toBe(before);
  });
});

describe('the templates of an organization', () => {
  /** One of about 400 KB, of which an organization can have 40. */
  const command = Array.from({ length: 100 }, () => 'x'.repeat(4_090));
  const large = { name: 'Large', image: 'large:1', command };
  const most = Math.floor(MOST_BYTES / (JSON.stringify(command).length + 500));
  const refusal = { status: 409, body: { code: 'LIMIT_REACHED', limit: MOST_BYTES } };

  it('have so many bytes together, and no more', async () => {
    const maker = await test.renter(0);
    const ids: string[] = [];
    for (let count = 0; count < most; count++)
      ids.push((await maker.api.post<{ id: string }>('/v1/templates', large)).id);
    const before = test.dump();
    expect(await maker.api.request('POST', '/v1/templates', large)).toMatchObject(refusal);
    expect(await maker.api.request('POST', `/v1/templates/${ids[0]}/duplicate`)).toMatchObject(refusal);
    expect(test.dump()).toEqual(before);
    const patch = (id: string | undefined, fields: object) => maker.api.request('PATCH', `/v1/templates/${id}`, fields);
    const longer = { readme: 'x'.repeat(65_536), description: 'x'.repeat(1_000) };
    const answers: number[] = [];
    for (const id of ids) answers.push((await patch(id, longer)).status);
    // Up to the last of the room, and no further.
    expect(answers.at(-1)).toBe(409);
    expect((await patch(ids.at(-1), { name: 'Still large' })).status).toBe(200);
    expect((await patch(ids[1], { command: [] })).status).toBe(200);
    expect((await patch(ids.at(-1), longer)).status).toBe(200);
    expect((await maker.api.request('DELETE', `/v1/templates/${ids[2]}`)).status).toBe(204);
    expect((await maker.api.request('POST', '/v1/templates', large)).status).toBe(201);
  });

  it('have fewer bytes together if they are public; those that are longer already stay', async () => {
    const maker = await test.renter(0);
    const ask = (method: string, path: string, fields: object) =>
      maker.api.request(method, `/v1/templates${path}`, fields);
    const post = async (name: string, fields: object) =>
      (await maker.api.post<{ id: string }>('/v1/templates', { ...large, name, ...fields })).id;
    const half = { command: command.slice(0, 30), visibility: 'public' };
    const tooLong = { status: 409, body: { code: 'LIMIT_REACHED', limit: MOST_PUBLIC_BYTES } };
    expect(await ask('POST', '', { ...large, visibility: 'public' })).toMatchObject(tooLong);
    const [first, second] = [await post('First', half), await post('Second', half)];
    expect(await ask('POST', '', { ...large, ...half, name: 'Third' })).toMatchObject(tooLong);
    expect(await ask('PATCH', `/${first}`, { command })).toMatchObject(tooLong);
    const own = await post('Own', {});
    expect(await ask('PATCH', `/${own}`, { visibility: 'public' })).toMatchObject(tooLong);
    // As an earlier release let it be made.
    store().transact((tx) =>
      tx.run(query.updateTable('templates').set({ visibility: 'public' }).where('id', '=', own)),
    );
    expect((await ask('PATCH', `/${own}`, { description: '', name: 'Renamed' })).status).toBe(200);
    expect((await ask('PATCH', `/${own}`, { command: command.slice(1) })).status).toBe(200);
    expect(await ask('PATCH', `/${second}`, { readme: 'longer' })).toMatchObject(tooLong);
    expect((await ask('PATCH', `/${own}`, { visibility: 'organization' })).status).toBe(200);
    expect((await ask('PATCH', `/${second}`, { readme: 'longer' })).status).toBe(200);
  });

  it('are not counted for other organizations', async () => {
    const other = await test.renter(0);
    expect((await other.api.request('POST', '/v1/templates', large)).status).toBe(201);
  });
});
