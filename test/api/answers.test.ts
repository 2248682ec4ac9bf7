import { statSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

it.each(['/v1/me', '/v1/offers', '/v1/nothing'])('%s is kept by no cache, and is what it says', async (path) => {
  const { headers } = await renter.api.request('GET', path);
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
});

it('the log says who has asked, and from where', async () => {
  const { key, secret } = await renter.api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', { name: 'k' });
  await test.api.as(secret).request('GET', '/v1/offers', undefined, { 'X-Forwarded-For': '198.51.100.9' });
  await test.api.request('GET', '/v1/nothing');
  const misplaced = `inv_${'x'.repeat(4_000)}`;
  await test.api.request('POST', `/v1/instances/${misplaced}/start`);
  expect(test.logged(20).join()).not.toContain(misplaced.slice(0, 40));
  const requests = test.logged(20).map((line) => JSON.parse(line) as Record<string, unknown>);
  const { organizationId } = renter;
  expect(requests).toContainEqual(
    expect.objectContaining({ route: '/v1/offers', keyId: key.id, organizationId, address: '198.51.100.9' }),
  );
  expect(requests).toContainEqual(expect.objectContaining({ route: '/v1/api-keys', userId: renter.userId }));
  expect(requests).toContainEqual(expect.objectContaining({ status: 404, address: '127.0.0.1' }));
});

it('the database is its owner’s alone, whatever the umask', () => {
  for (const suffix of ['', '-wal', '-shm']) expect(statSync(test.databaseFile + suffix).mode & 0o777).toBe(0o600);
});

describe('a name', () => {
  const forbidden = [
    'a\u0000b',
    'a\nb',
    'a\u001b[2Jb',
    'a\u0085b',
    '\u202eevil',
    'a\u2066b',
    '\u200fa',
    'Ac\u200bme',
    '\u3164',
    '  ',
  ];
  const refused = { status: 422, body: { code: 'VALIDATION_FAILED' } };

  it.each(forbidden)('with a character that nobody sees is refused: %j', async (name) => {
    const { api } = renter;
    const account = { email: 'new@example.com', password: 'a renter password', name };
    expect(await test.api.request('POST', '/v1/auth/sign-up', account)).toMatchObject(refused);
    expect(await api.request('POST', '/v1/api-keys', { name })).toMatchObject(refused);
    expect(await api.request('POST', '/v1/orgs', { name })).toMatchObject(refused);
    expect(await api.request('PATCH', '/v1/orgs/current', { name })).toMatchObject(refused);
    expect(await api.request('POST', '/v1/templates', { name, image: 'a:1' })).toMatchObject(refused);
    expect(await api.request('POST', '/v1/ssh-keys', { name, public_key: 'x' })).toMatchObject(refused);
    const body = { offer_id: '0'.repeat(8), template_id: '', disk_gb: 10, label: name };
    expect(await api.request<InstanceBody>('POST', '/v1/instances', body)).toMatchObject(refused);
  });

  it.each(['Zoë’s lab 🚀', '研究室', 'Лаборатория', 'مختبر', 'ශ්\u200dරී ලංකා'])(
    'in any script is taken: %s',
    async (name) => {
      expect((await renter.api.request('POST', '/v1/orgs', { name })).status).toBe(201);
    },
  );
});
