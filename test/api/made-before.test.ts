import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import { WEEKDAYS } from '../../control-plane/domain/instances/schedule.js';
import { World } from '../contract/world.js';
import type { ApiClient } from '../harness/api-client.js';
import { Browser } from '../harness/browser.js';
import type { Renter } from '../harness/control-plane.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { addApp } from '../harness/second-factors.js';

const PASSWORD = 'a renter password';
const reason = 'test';

let world: World;
let instance: string;
let maker: Renter;
beforeAll(async () => {
  world = await World.make();
  await world.test.restart({ publicUrl: 'http://localhost' });
  await world.test.signInOperator();
  instance = (await world.stopped((await world.host()).body)).id;
});
afterAll(() => world.stop());
beforeEach(async () => {
  maker = await world.join('admin');
  world.test.makeOperator(maker.userId);
});

/** Tells whether what was made still acts. */
type Acts = () => Promise<boolean>;

const answers = async (api: ApiClient, method: string, path: string, body?: object) =>
  (await api.request(method, path, body)).status < 300;

const keyOf = (kind: 'personal' | 'team') => async (): Promise<Acts> => {
  const { api } = await world.key(kind, maker);
  return () => answers(api, 'GET', '/v1/instances');
};

const signIn = async ({ email }: Renter) => {
  const { token } = await world.test.api.post<{ token: string }>('/v1/auth/sign-in', { email, password: PASSWORD });
  return world.test.api.as(token);
};

/** For each kind of the table: makes one. The last one tells after a day whether it acts. */
const KINDS: Record<string, () => Promise<Acts>> = {
  invitation: async () => {
    const guest = await world.test.renter(0);
    const invite = { email: guest.email, role: 'admin' };
    const { token } = await world.inOrg(maker).post<{ token: string }>('/v1/orgs/current/invites', invite);
    return () => answers(guest.api, 'POST', `/v1/invites/${token}/accept`);
  },
  'personal API key': keyOf('personal'),
  'team API key': keyOf('team'),
  'other session': async () => {
    const api = await signIn(maker);
    return () => answers(api, 'GET', '/v1/me');
  },
  'link that signs a browser in': async () => {
    const { token } = await maker.api.post<{ token: string }>('/v1/auth/sign-in-link');
    return async () => {
      const { port } = new URL(world.test.url);
      const browser = new Browser(Number(port), 'http://localhost');
      await browser.submit(await browser.open('/sign-in/link'), '/sign-in/link', { token });
      return '__Host-gpurent' in (await browser.cookies());
    };
  },
  'approved program': async () => {
    const codes = await world.test.api.post<{ device_code: string; user_code: string }>('/v1/auth/device', {
      name: 'gpurent',
    });
    const { id } = await maker.api.post<{ id: string }>('/v1/me/device-codes', { user_code: codes.user_code });
    await maker.api.post(`/v1/me/device-codes/${id}/approve`);
    const { device_code } = codes;
    return () => answers(world.test.api, 'POST', '/v1/auth/device/token', { device_code });
  },
  schedule: async () => {
    const path = `/v1/instances/${instance}/schedule`;
    const entries = [{ action: 'stop', days: [...WEEKDAYS], at: '18:30' }];
    await world.inOrg(maker).request('PUT', path, { time_zone: 'UTC', entries });
    return async () => (await world.admin.api.get<{ entries: object[] }>(path)).entries.length === 1;
  },
  'time to stop': async () => {
    const path = `/v1/instances/${instance}`;
    const stop_at = new Date(world.test.clock.now() + 400 * DAY_MS).toISOString();
    await world.inOrg(maker).request('PATCH', path, { stop_at });
    return async () => (await world.admin.api.get<{ stop_at: string }>(path)).stop_at === stop_at;
  },
  'webhook endpoint': async () => {
    const made = { url: 'https://hooks.example' };
    const { endpoint } = await world.inOrg(maker).post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', made);
    const path = `/v1/webhook-endpoints/${endpoint.id}`;
    return async () => {
      const isOn = (await world.admin.api.get<{ enabled: boolean }>(path)).enabled;
      await world.admin.api.delete(path);
      return isOn;
    };
  },
  "operator's link to a new password": async () => {
    const { userId } = await world.test.renter(0);
    const path = `/v1/operator/users/${userId}/password-reset`;
    const { token } = await maker.api.post<{ token: string }>(path, { reason });
    const reset = { token, new_password: 'another fine password' };
    return () => answers(world.test.api, 'POST', '/v1/auth/password-reset/confirm', reset);
  },
  "operator's enrollment token": async () => {
    const { token } = await maker.api.post<{ token: string }>('/v1/operator/enrollment-tokens', {});
    return async () => {
      const enrolled = FakeAgent.enroll(world.test.grpcAddress, token);
      return enrolled.then(
        (agent) => (agent.close(), true),
        () => false,
      );
    };
  },
  "operator's removal of second factors": async () => {
    const renter = await world.test.renter(0);
    await addApp(world.test, renter.api);
    await maker.api.post(`/v1/operator/users/${renter.userId}/second-factor-removal`, { reason });
    return async () => {
      world.test.advance(DAY_MS);
      return !(await answers(renter.api, 'GET', '/v1/me'));
    };
  },
};

/** For each column of the table: what happens to the maker. */
const CASES: Record<string, () => Promise<unknown>> = {
  'role lost': async () => {
    const member = `/v1/orgs/current/members/${maker.userId}`;
    await world.admin.api.request('PATCH', member, { role: 'viewer' });
    await world.test.operator.request('DELETE', `/v1/operator/users/${maker.userId}/operator`, { reason });
  },
  left: () => world.leave(maker),
  suspended: () =>
    world.test.operator.post(`/v1/operator/organizations/${world.admin.organizationId}/suspend`, { reason }),
  'sessions ended': () => maker.api.request('DELETE', '/v1/auth/sessions'),
  'keys revoked': () =>
    world.test.operator.post(`/v1/operator/users/${maker.userId}/end-sessions`, { reason, revoke_api_keys: true }),
  'account removed': () => world.test.operator.delete(`/v1/operator/users/${maker.userId}`),
};

const [heads = [], , ...rows] = tableOf('## What acts later than its maker');

function tableOf(heading: string): string[][] {
  const page = readFileSync('docs/dev/security-model.md', 'utf8');
  const [, section = ''] = page.split(`${heading}\n`);
  const lines = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('|'));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

it('the table has each kind and each case, once', () => {
  expect(heads.slice(1)).toEqual(Object.keys(CASES));
  expect(rows.map(([kind]) => kind)).toEqual(Object.keys(KINDS));
});

it.each(heads.slice(1).map((column, index) => [column, index + 1] as const))('%s', async (column, index) => {
  const made: [string, Acts][] = [];
  for (const [kind, make] of Object.entries(KINDS)) made.push([kind, await make()]);
  await CASES[column]?.();
  const found: Record<string, string> = {};
  for (const [kind, acts] of made) found[kind] = (await acts()) ? 'stays' : 'ends';
  await world.test.operator.post(`/v1/operator/organizations/${world.admin.organizationId}/restore`, { reason });
  expect(found).toEqual(Object.fromEntries(rows.map((row) => [row[0], row[index]])));
});

describe('an invitation', () => {
  const invites = async () =>
    (await world.admin.api.get<{ items: { id: string }[] }>('/v1/orgs/current/invites')).items.map(({ id }) => id);
  const invite = async (email: string, role: string) =>
    (await world.inOrg(maker).post<{ token: string }>('/v1/orgs/current/invites', { email, role })).token;

  it('of an admin who becomes a member is withdrawn, and told and recorded like any other', async () => {
    const guest = await world.test.renter(0);
    await invite(guest.email, 'admin');
    const [id = ''] = await invites();
    const member = `/v1/orgs/current/members/${maker.userId}`;
    await world.admin.api.request('PATCH', member, { role: 'member' });
    expect(await invites()).not.toContain(id);
    const acts = '/v1/audit-log?action=invite.withdraw&limit=1';
    const { items } = await world.admin.api.get<{ items: object[] }>(acts);
    expect(items).toMatchObject([{ object: `invites/${id}`, actor_id: world.admin.userId }]);
  });

  it('that is a second one to the same person ends with the first: nobody who was removed comes back by it', async () => {
    const guest = await world.test.renter(0);
    const [first, second] = [await invite(guest.email, 'member'), await invite(guest.email, 'admin')];
    await guest.api.post(`/v1/invites/${first}/accept`);
    await world.admin.api.delete(`/v1/orgs/current/members/${guest.userId}`);
    const back = await guest.api.request('POST', `/v1/invites/${second}/accept`);
    expect(back).toMatchObject({ status: 404, body: { code: 'INVITE_NOT_FOUND' } });
  });
});
