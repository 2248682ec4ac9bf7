import { afterAll, beforeAll, expect, it } from 'vitest';
import { World } from '../contract/world.js';

const INFO = 30;

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

interface Line {
  level: number;
  msg: string;
  method?: string;
  route?: string;
  [field: string]: unknown;
}

/** The lines of requests that were logged since. */
function since(): () => Line[] {
  const { length } = world.test.logged(0);
  const lines = () => world.test.logged(0).slice(length);
  return () =>
    lines()
      .map((line) => JSON.parse(line) as Line)
      .filter(({ msg }) => msg === 'request');
}

it('a request that changes something is logged with account and address', async () => {
  const lines = since();
  const key = await world.key();
  await key.api.get('/v1/instances');
  await key.api.post(`/v1/templates/${world.templateId}/duplicate`);
  const [made, read, duplicated] = lines();
  const { userId, organizationId } = world.admin;
  expect(made).toMatchObject({ level: INFO, method: 'POST', route: '/v1/api-keys', status: 201, address: '127.0.0.1' });
  expect(made).toMatchObject({ userId, organizationId });
  expect(read).toMatchObject({ level: INFO - 10, method: 'GET', keyId: key.key.id, organizationId });
  expect(duplicated).toMatchObject({ level: INFO, keyId: key.key.id, organizationId, address: '127.0.0.1' });
});

it('what is only read, and what is nowhere, makes no long day', async () => {
  const lines = since();
  await world.admin.api.get('/v1/me');
  await world.test.api.request('GET', '/healthz');
  await world.test.api.request('GET', '/wp-login.php');
  await world.test.api.request('POST', '/wp-login.php');
  expect(lines().map(({ level }) => level)).toEqual([INFO - 10, INFO - 10, INFO - 10, INFO - 10]);
});

it('what is refused is no quiet day', async () => {
  const lines = since();
  await world.test.api.request('GET', '/v1/me');
  await world.admin.api.request('GET', '/v1/instances/none');
  await world.test.api.request('POST', '/v1/auth/sign-in', { email: 'a@example.com', password: 'x' });
  expect(lines().map(({ level, status }) => [level, status])).toEqual([
    [INFO, 401],
    [INFO, 404],
    [INFO, 401],
  ]);
});
