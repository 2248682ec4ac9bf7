import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkUrl } from '../../control-plane/services/webhooks/endpoint-url.js';
import { Refusal } from '../../control-plane/domain/refusal.js';
import { mayReach } from '../../shared/network/reachable.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter(0);
});
afterAll(() => test.stop());

interface Endpoint {
  id: string;
  url: string;
  enabled: boolean;
  [field: string]: unknown;
}
const PATH = '/v1/webhook-endpoints';
const URL_OF_HOOKS = 'https://hooks.example/gpurent?team=a';

const create = (fields: object = {}, { api } = renter) =>
  api.post<{ endpoint: Endpoint; secret: string }>(PATH, { url: URL_OF_HOOKS, ...fields });

describe('a webhook endpoint', () => {
  it('is created with a secret that nothing else tells, changed and deleted', async () => {
    const { endpoint, secret } = await create({ description: 'for the team', types: ['billing.paid'] });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(endpoint).toMatchObject({ url: URL_OF_HOOKS, description: 'for the team', types: ['billing.paid'] });
    expect(endpoint).toMatchObject({ enabled: true, disabled_reason: null, failing_since: null, instance_id: null });
    const path = `${PATH}/${endpoint.id}`;
    expect(await renter.api.get(path)).toEqual(endpoint);
    expect((await renter.api.get<{ items: Endpoint[] }>(PATH)).items).toEqual([endpoint]);
    expect(test.everythingStored()).not.toContain(secret.slice(6));
    const changed = await renter.api.request<Endpoint>('PATCH', path, {
      types: null,
      url: 'https://other.example:8443',
    });
    expect(changed.body).toMatchObject({
      types: null,
      url: 'https://other.example:8443/',
      description: 'for the team',
    });
    expect((await renter.api.request('DELETE', path)).status).toBe(204);
    expect(await renter.api.request('GET', path)).toMatchObject({
      status: 404,
      body: { code: 'WEBHOOK_ENDPOINT_NOT_FOUND' },
    });
  });

  it('is one of ten at most', async () => {
    const other = await test.renter(0);
    for (let count = 0; count < 10; count++) await create({}, other);
    const refused = await other.api.request('POST', PATH, { url: URL_OF_HOOKS });
    expect(refused).toMatchObject({ status: 409, body: { code: 'LIMIT_REACHED', limit: 10 } });
    const { items } = await other.api.get<{ items: Endpoint[] }>(PATH);
    await other.api.delete(`${PATH}/${items[0]?.id}`);
    await create({}, other);
  });

  it('is nobody else’s', async () => {
    const other = await test.renter(0);
    const { endpoint } = await create({}, other);
    const path = `${PATH}/${endpoint.id}`;
    for (const [method, at, body] of [
      ['GET', path],
      ['PATCH', path, { enabled: false }],
      ['DELETE', path],
      ['POST', `${path}/rotate-secret`],
      ['POST', `${path}/test`],
      ['POST', `${path}/replay`, { since: '2026-01-01T00:00:00Z' }],
      ['GET', `${path}/deliveries`],
    ] as const)
      expect(await renter.api.request(method, at, body), at).toMatchObject({
        status: 404,
        body: { code: 'WEBHOOK_ENDPOINT_NOT_FOUND' },
      });
    const { id } = await other.api.post<{ id: string }>(`${path}/test`);
    expect(await renter.api.request('POST', `/v1/webhook-deliveries/${id}/replay`)).toMatchObject({
      status: 404,
      body: { code: 'WEBHOOK_DELIVERY_NOT_FOUND' },
    });
    const foreign = await renter.api.request('POST', PATH, { url: URL_OF_HOOKS, instance_id: endpoint.id });
    expect(foreign).toMatchObject({ status: 404, body: { code: 'INSTANCE_NOT_FOUND' } });
  });

  it('tells the organization when it is switched off, and gets nothing until it is on', async () => {
    const { endpoint } = await create();
    const path = `${PATH}/${endpoint.id}`;
    const { body: off } = await renter.api.request<Endpoint>('PATCH', path, { enabled: false });
    expect(off).toMatchObject({ enabled: false, disabled_reason: 'renter' });
    expect(await renter.api.request('POST', `${path}/test`)).toMatchObject({
      status: 409,
      body: { code: 'WEBHOOK_DISABLED' },
    });
    const { body: on } = await renter.api.request<Endpoint>('PATCH', path, { enabled: true });
    expect(on).toMatchObject({ enabled: true, disabled_reason: null, disabled_at: null });
    expect(test.everythingStored()).toContain(
      `{\\"webhook_endpoint_id\\":\\"${endpoint.id}\\",\\"reason\\":\\"renter\\"}`,
    );
  });

  it.each([
    [{ types: [] }, 'types'],
    [{ types: ['billing.unknown'] }, 'types.0'],
    [{ types: ['billing.paid', 'billing.paid'] }, 'types'],
    [{ description: 'x'.repeat(201) }, 'description'],
    [{ url: `https://example.com/${'x'.repeat(2_048)}` }, 'url'],
    [{ instance_id: 'x' }, 'instance_id'],
    [{ secret: 'mine' }, 'secret'],
  ])('is refused with %j', async (fields, path) => {
    const refused = await renter.api.request<{ details: { path: string }[] }>('POST', PATH, {
      url: URL_OF_HOOKS,
      ...fields,
    });
    expect(refused.status).toBe(422);
    expect(refused.body.details.map((detail) => detail.path)).toContain(path);
  });
});

describe('the address of an endpoint', () => {
  it.each([
    'http://hooks.example',
    'ftp://hooks.example',
    'hooks.example',
    'https://',
    'https://user@hooks.example',
    'https://user:password@hooks.example',
    'https://hooks.example/#part',
    'https://hooks.example:22',
    'https://hooks.example:80/',
    'https://127.0.0.1',
    'https://127.1',
    'https://2130706433',
    'https://0x7f.0.0.1',
    'https://0177.0.0.1',
    'https://0',
    'https://10.0.0.1:8443',
    'https://169.254.169.254/latest/meta-data',
    'https://[::1]',
    'https://[::]',
    'https://[::ffff:127.0.0.1]',
    'https://[::ffff:a9fe:a9fe]',
    'https://[::127.0.0.1]',
    'https://[::ffff:0:127.0.0.1]',
    'https://[64:ff9b::7f00:1]',
    'https://[2002:7f00:1::]',
    'https://[2001:0:1::1]',
    'https://[fe80::1]',
    'https://[fd00::1]',
    'https://localhost/',
    'https://LOCALHOST./hooks',
    'https://app.localhost:8443/',
  ])('is not %s', (url) => {
    expect(() => checkUrl(url, [])).toThrow(Refusal);
  });

  it.each([
    ['https://hooks.example', 'https://hooks.example/'],
    ['HTTPS://Hooks.Example:443/A?b=c', 'https://hooks.example/A?b=c'],
    ['https://hooks.example:8443', 'https://hooks.example:8443/'],
    ['https://93.184.215.14/', 'https://93.184.215.14/'],
    ['https://[2606:4700::1]/', 'https://[2606:4700::1]/'],
    ['https://mylocalhost/', 'https://mylocalhost/'],
  ])('can be %s', (url, normal) => {
    expect(checkUrl(url, [])).toBe(normal);
  });

  it('can be in a network that the operator allows', () => {
    expect(checkUrl('https://10.1.2.3', ['10.1.0.0/16'])).toBe('https://10.1.2.3/');
    expect(() => checkUrl('https://10.2.2.3', ['10.1.0.0/16'])).toThrow('ask the operator');
    expect(checkUrl('https://localhost/', ['127.0.0.0/8'])).toBe('https://localhost/');
  });
});

it('requests that strangers cause reach neither forbidden networks nor this machine, unless they are allowed', () => {
  const own = ['203.0.113.7', 'fe80::1%eth0', '2001:db8::7'];
  for (const address of ['203.0.113.7', '::ffff:203.0.113.7', '2001:db8::7', '10.0.0.1', 'fe80::1%eth0', 'name', ''])
    expect(mayReach(address, [], own), address).toBe(false);
  expect(mayReach('203.0.113.8', [], own)).toBe(true);
  expect(mayReach('203.0.113.7', ['203.0.113.7'], own)).toBe(true);
  expect(mayReach('::ffff:10.0.0.1', ['10.0.0.0/8'], own)).toBe(true);
});
