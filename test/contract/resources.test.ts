import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { NOWHERE, TIMESTAMP, UUID, World, type ApiKeyBody, type DeployBody, type Key } from './world.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const listed = async (id: string) =>
  (await world.admin.api.get<{ items: ApiKeyBody[] }>('/v1/api-keys')).items.find((key) => key.id === id);

describe('Resources: API key', () => {
  let key: Key;
  beforeAll(async () => {
    key = await world.key('personal', world.admin, 'n');
  });

  it('id: uuid', () => expect(key.key.id).toMatch(UUID));
  it('name: string, 1 to 64 characters', async () => {
    expect(key.key.name).toBe('n');
    expect((await world.key('team', world.admin, 'x'.repeat(64))).key.name).toHaveLength(64);
  });
  it('kind: `personal` or `team`', async () => {
    expect(key.key.kind).toBe('personal');
    expect((await world.key('team')).key.kind).toBe('team');
  });
  it('prefix: the first 12 characters of the secret', () => expect(key.key.prefix).toBe(key.secret.slice(0, 12)));
  it('creator_email: e-mail of the creator', () => expect(key.key.creator_email).toBe(world.admin.email));
  it('creator_id: uuid', () => expect(key.key.creator_id).toBe(world.admin.userId));
  it('created_at: timestamp', () => expect(key.key.created_at).toMatch(TIMESTAMP));
  it('last_used_at: null until first use; updated on every request the key makes', async () => {
    const fresh = await world.key();
    expect(fresh.key.last_used_at).toBeNull();
    expect((await listed(fresh.key.id))?.last_used_at).toBeNull();
    for (const path of ['/v1/offers', '/v1/me', '/v1/instances/nothing']) {
      world.test.clock.advance(5);
      await fresh.api.request('GET', path);
      expect((await listed(fresh.key.id))?.last_used_at).toBe(new Date(world.test.clock.now()).toISOString());
    }
  });
  it('creator_is_member: false once the creator has left the organization', async () => {
    const colleague = await world.join('admin');
    const team = await world.key('team', colleague);
    expect(team.key.creator_is_member).toBe(true);
    await world.leave(colleague);
    expect(await listed(team.key.id)).toMatchObject({ creator_is_member: false, creator_id: colleague.userId });
  });
  it('the secret is `svc_` and 48 hexadecimal characters, returned once and never again', async () => {
    expect(key.secret).toMatch(/^svc_[0-9a-f]{48}$/);
    const list = await world.admin.api.request('GET', '/v1/api-keys');
    expect(JSON.stringify(list.body)).not.toContain(key.secret.slice(12));
  });
  it('only its first 12 characters are stored', () => {
    const stored = world.test.everythingStored();
    expect(stored).toContain(key.secret.slice(0, 12));
    expect(stored).not.toContain(key.secret);
  });
  it('it has no expiry date', async () => {
    const other = await World.make();
    const { api } = await other.key();
    other.test.clock.advance(50 * 365 * 86_400_000);
    expect((await api.request('GET', '/v1/offers')).status).toBe(200);
    await other.stop();
  });
  it('personal: stops working, and is revoked, when its creator leaves', async () => {
    const colleague = await world.join();
    const personal = await world.key('personal', colleague);
    await world.leave(colleague);
    expect((await personal.api.request('GET', '/v1/offers')).status).toBe(401);
    expect(await listed(personal.key.id)).toBeUndefined();
  });
  it('team: survives its creator leaving', async () => {
    const colleague = await world.join('admin');
    const team = await world.key('team', colleague);
    await world.leave(colleague);
    expect((await team.api.request('GET', '/v1/offers')).status).toBe(200);
  });
});

describe('Resources: instance', () => {
  let fresh: InstanceBody;
  let running: InstanceBody;
  let stopped: InstanceBody;
  let offerId: string;

  beforeAll(async () => {
    const { agent, body } = await world.host({ gpus: 4 });
    offerId = body.offer_id;
    agent.automatic = false;
    const withToken = await world.test.template({
      mode: ['ssh', 'jupyter'],
      ssh_user: 'root',
      readme: 'r',
      onstart: 'o',
    });
    const { id } = await world.admin.api.post<InstanceBody>('/v1/instances', {
      ...body,
      template_id: withToken,
      label: 'mine',
      ssh_key_id: world.sshKeyId,
    });
    fresh = await world.admin.api.get(`/v1/instances/${id}`);
    agent.automatic = true;
    agent.done(await eventually('the command', () => agent.held[0]));
    running = await statusIs(world.admin.api, id, 'running');
    await world.admin.api.post(`/v1/instances/${id}/stop`);
    stopped = await statusIs(world.admin.api, id, 'stopped');
  });

  it('id: uuid', () => expect(fresh.id).toMatch(UUID));
  it('label: string or null, default null', async () => {
    expect(fresh['label']).toBe('mine');
    const { body } = await world.host();
    expect((await world.running(body))['label']).toBeNull();
  });
  it('status: one of the eight', async () => {
    const ids = await world.inEveryStatus();
    const seen: string[] = [];
    for (const [status, id] of Object.entries(ids)) {
      const instance = await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`);
      expect(instance.status).toBe(status);
      seen.push(instance.status);
      expect(
        Object.keys(instance)
          .filter((field) => !ADDED.includes(field))
          .sort(),
      ).toEqual(FIELDS);
    }
    expect(seen.sort()).toEqual(
      ['creating', 'destroyed', 'destroying', 'error', 'running', 'starting', 'stopped', 'stopping'].sort(),
    );
  });
  it('disk_gb: requested disk', () => expect(fresh['disk_gb']).toBe(10));
  it('price_per_hour_micro, storage_price_per_gb_hour_micro: snapshotted at rent time', async () => {
    expect(fresh).toMatchObject({ price_per_hour_micro: 1_000_000, storage_price_per_gb_hour_micro: 100 });
    const prices = { price_per_hour_micro: 5, storage_price_per_gb_hour_micro: 6 };
    await world.test.operator.request('PATCH', `/v1/operator/offers/${offerId}`, prices);
    const now = await world.admin.api.get(`/v1/instances/${fresh.id}`);
    expect(now).toMatchObject({ price_per_hour_micro: 1_000_000, storage_price_per_gb_hour_micro: 100 });
  });
  it('ssh_host: public IP address of the GPU machine; null until the workload is up', () => {
    expect(fresh.ssh_host).toBeNull();
    expect(running.ssh_host).toBe('203.0.113.7');
  });
  it('ssh_port: assigned from the host’s published range; never 22; null until the workload is up', () => {
    expect(fresh.ssh_port).toBeNull();
    expect(running.ssh_port).toBeGreaterThan(1023);
  });
  it('ssh_user: connect user name', () => expect(fresh.ssh_user).toBe('root'));
  it('jupyter_url: once a jupyter template reports one; carries the access token as query parameter `token`', () => {
    expect(fresh['jupyter_url']).toBeNull();
  });
  it('open_url: once reported', () => expect(fresh['open_url']).toBeNull());
  it('access_token: null for a template that uses none, and null once the instance is destroyed', async () => {
    expect(fresh['access_token']).toMatch(/^[0-9a-f]{48}$/);
    const { body } = await world.host();
    expect((await world.running(body))['access_token']).toBeNull();
    const jupyter = await world.test.template({ mode: ['jupyter'] });
    const { body: other } = await world.host();
    const { id } = await world.running({ ...other, template_id: jupyter });
    await world.admin.api.delete(`/v1/instances/${id}`);
    expect((await statusIs(world.admin.api, id, 'destroyed'))['access_token']).toBeNull();
  });
  it('error_code, error_message: why; otherwise null', async () => {
    expect(running).toMatchObject({ error_code: null, error_message: null });
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    agent.exit(id, { code: 0 });
    expect(await statusIs(world.admin.api, id, 'error')).toMatchObject({
      error_code: 'workload_completed',
      error_message: expect.stringContaining('exit code 0') as string,
    });
  });
  it('allowed_actions: a freshly created instance shows only `destroy`', () => {
    expect(fresh.allowed_actions).toEqual(['destroy']);
    expect(running.allowed_actions).toEqual(['stop', 'destroy']);
    expect(stopped.allowed_actions).toEqual(['start', 'destroy']);
  });
  it('hold_price_per_hour_micro, stop_…, suspended_…: always null', () => {
    for (const instance of [fresh, running, stopped]) {
      expect(instance).toMatchObject({
        hold_price_per_hour_micro: null,
        stop_hold_price_per_hour_micro: null,
        suspended_hold_price_per_hour_micro: null,
      });
    }
  });
  it('created_at, status_changed_at: timestamps', () => {
    expect(fresh['created_at']).toMatch(TIMESTAMP);
    expect(running['status_changed_at']).toMatch(TIMESTAMP);
  });
  it('started_at: set the first time the workload runs', async () => {
    expect(fresh['started_at']).toBeNull();
    expect(running['started_at']).toMatch(TIMESTAMP);
    world.test.clock.advance(1_000);
    await world.admin.api.post(`/v1/instances/${fresh.id}/start`);
    expect((await statusIs(world.admin.api, fresh.id, 'running'))['started_at']).toBe(running['started_at']);
  });
  it('destroyed_at: timestamp or null', async () => {
    expect(running['destroyed_at']).toBeNull();
    await world.admin.api.delete(`/v1/instances/${fresh.id}`);
    expect((await statusIs(world.admin.api, fresh.id, 'destroyed'))['destroyed_at']).toMatch(TIMESTAMP);
  });
  it('spend_micro: settled charges so far', () => expect(fresh['spend_micro']).toBe(0));
  it('deployed_by, deployed_via_api_key: the member, or the team key as `<key_name> (<prefix>…)`', async () => {
    expect(fresh).toMatchObject({ deployed_by: world.admin.email, deployed_via_api_key: null });
    const { body } = await world.host({ gpus: 2 });
    const [team, personal] = [await world.key('team', world.admin, 'ci'), await world.key('personal', world.member)];
    const { id, name, kind, prefix } = team.key;
    expect(await team.api.post('/v1/instances', body)).toMatchObject({
      deployed_by: `ci (${prefix}…)`,
      deployed_via_api_key: { id, name, kind, prefix, revoked: false },
    });
    const { id: instanceId } = await personal.api.post<InstanceBody>('/v1/instances', body);
    await world.admin.api.delete(`/v1/api-keys/${personal.key.id}`);
    expect(await world.admin.api.get(`/v1/instances/${instanceId}`)).toMatchObject({
      deployed_by: world.member.email,
      deployed_via_api_key: { kind: 'personal', revoked: true },
    });
  });
  it('offer: abbreviated to its `id`', () => expect(fresh['offer']).toEqual({ id: offerId }));
  it('template: its `readme` and `onstart` are null there', async () => {
    const template = fresh['template'] as { id: string; readme: unknown; onstart: unknown };
    expect(template).toMatchObject({ readme: null, onstart: null });
    expect(await world.admin.api.get(`/v1/templates/${template.id}`)).toMatchObject({ readme: 'r', onstart: 'o' });
  });
});

/** What is added to the fields that the API promises: null, or told beside it. */
const ADDED = [
  'ssh_ready_at',
  'ssh_host_key',
  'ssh_key_fingerprint',
  'releases_gpus_at',
  'access_replacement',
  'stop_at',
  'max_charge_micro',
  'idle_stop_minutes',
  'on_limit',
  'release_stopped_after_hours',
  'destroys_at',
  'gpu_model',
  'num_gpus',
  'machine',
];
const FIELDS = [
  'id',
  'label',
  'status',
  'disk_gb',
  'price_per_hour_micro',
  'storage_price_per_gb_hour_micro',
  'ssh_host',
  'ssh_port',
  'ssh_user',
  'jupyter_url',
  'open_url',
  'access_token',
  'error_code',
  'error_message',
  'allowed_actions',
  'gpus_released',
  'gpu_release',
  'gpu_release_requested_at',
  'stop_releases_gpus',
  'hold_price_per_hour_micro',
  'stop_hold_price_per_hour_micro',
  'suspended_hold_price_per_hour_micro',
  'created_at',
  'started_at',
  'status_changed_at',
  'destroyed_at',
  'spend_micro',
  'deployed_by',
  'deployed_via_api_key',
  'offer',
  'template',
].sort();

describe('Resources: deploy request body', () => {
  let body: DeployBody;
  beforeAll(async () => {
    ({ body } = await world.host({ gpus: 8 }));
  });
  const refusedWith = async (fields: object, api = world.admin.api) =>
    world.refused(api, 'POST', '/v1/instances', { ...body, ...fields });
  const deployedWith = (fields: object) => world.deploys({ ...body, ...fields });

  it.each(['offer_id', 'template_id', 'disk_gb'])('%s is required', async (field) => {
    expect(await refusedWith({ [field]: undefined })).toMatchObject({
      status: 422,
      code: 'VALIDATION_FAILED',
      details: [{ path: field }],
    });
  });
  it('offer_id: must still be `available`, else 409 OFFER_UNAVAILABLE', async () => {
    expect(await refusedWith({ offer_id: NOWHERE })).toMatchObject({ status: 409, code: 'OFFER_UNAVAILABLE' });
  });
  it('template_id: a system template, a public template, or one owned by the caller’s organization', async () => {
    const own = await world.admin.api.post<{ id: string }>('/v1/templates', { name: 'own', image: 'i' });
    const shared = { name: 'shared', image: 'i', visibility: 'public' };
    const open = await world.stranger.api.post<{ id: string }>('/v1/templates', shared);
    const foreign = await world.stranger.api.post<{ id: string }>('/v1/templates', { name: 'theirs', image: 'i' });
    expect(await deployedWith({ template_id: own.id })).toBe(201);
    expect(await deployedWith({ template_id: open.id })).toBe(201);
    expect(await refusedWith({ template_id: foreign.id })).toMatchObject({ status: 404, code: 'TEMPLATE_NOT_FOUND' });
  });
  it.each([9, 20_001, 10.5, '10', null])('disk_gb: %j is not an integer from 10 to 20000', async (disk_gb) => {
    expect(await refusedWith({ disk_gb })).toMatchObject({ status: 422, code: 'VALIDATION_FAILED' });
  });
  it('disk_gb: not larger than the host’s machine.disk_gb', async () => {
    expect(await refusedWith({ disk_gb: 1_001 })).toMatchObject({
      status: 422,
      code: 'DISK_TOO_LARGE',
      max_disk_gb: 1_000,
    });
  });
  it('label: up to 64 characters', async () => {
    expect(await deployedWith({ label: 'x'.repeat(64) })).toBe(201);
    expect(await refusedWith({ label: 'x'.repeat(65) })).toMatchObject({ code: 'VALIDATION_FAILED' });
  });
  it('env_overrides: at most 100 entries, key up to 256, value up to 4,096 characters', async () => {
    const entry = (key: string, value: string) => ({ key, value, secret: false });
    const most = Array.from({ length: 100 }, (_, index) => entry(`${'k'.repeat(250)}${index}`, 'v'.repeat(4_096)));
    expect(await deployedWith({ env_overrides: most })).toBe(201);
    for (const env_overrides of [
      [...most, entry('one', 'more')],
      [entry('k'.repeat(257), '')],
      [entry('k', 'v'.repeat(4_097))],
      [{ key: 'k', value: 'v', secrets: true }],
    ]) {
      expect(await refusedWith({ env_overrides })).toMatchObject({ status: 422, code: 'VALIDATION_FAILED' });
    }
  });
  it('SSH key rule: a session or a personal key attaches the caller’s own', async () => {
    const theirs = await world.sshKey(world.member);
    const [session, personal] = [world.admin.api, (await world.key('personal')).api];
    for (const api of [session, personal]) {
      expect(await refusedWith({ ssh_key_id: theirs }, api)).toMatchObject({ status: 404, code: 'SSH_KEY_NOT_FOUND' });
    }
    const { body: fits } = await world.host({ gpus: 2 });
    for (const api of [session, personal]) {
      expect(await world.deploys({ ...fits, ssh_key_id: world.sshKeyId }, api)).toBe(201);
    }
  });
  it('SSH key rule: a team key attaches that of anyone who is a member now; never a former member’s', async () => {
    const colleague = await world.join('admin');
    const theirs = await world.sshKey(colleague);
    const team = await world.key('team', colleague);
    const { body: fits } = await world.host({ gpus: 2 });
    expect(await world.deploys({ ...fits, ssh_key_id: theirs }, team.api)).toBe(201);
    await world.leave(colleague);
    expect(await refusedWith({ ssh_key_id: theirs }, team.api)).toMatchObject({
      status: 404,
      code: 'SSH_KEY_NOT_FOUND',
    });
    expect(await world.deploys({ ...fits, ssh_key_id: world.sshKeyId }, team.api)).toBe(201);
  });
  it.each([NOWHERE, 'nothing', ''])('SSH key rule: any other value (%j) gives 404', async (ssh_key_id) => {
    expect(await refusedWith({ ssh_key_id })).toMatchObject({ status: 404, code: 'SSH_KEY_NOT_FOUND' });
  });
  it('environment precedence: template, overrides, the platform’s own; an entry whose value is null is dropped', async () => {
    const entry = (key: string, value: string | null) => ({ key, value, secret: false });
    const template_id = await world.test.template({
      mode: ['jupyter'],
      env: [
        entry('A', 'template'),
        entry('B', 'template'),
        entry('C', 'template'),
        entry('T', '${SERVICE_ACCESS_TOKEN}'),
      ],
    });
    const { agent, body: fits } = await world.host();
    const env_overrides = [
      entry('A', 'mine'),
      entry('C', null),
      entry('NEW', 'mine'),
      entry('JUPYTER_TOKEN', 'mine'),
      entry('GPU_COUNT', '99'),
      entry('SERVICE_ACCESS_TOKEN', 'mine'),
      entry('T', 'mine'),
    ];
    const { access_token } = await world.running({ ...fits, template_id, env_overrides });
    const env = agent.received[0]?.running?.spec.env ?? [];
    expect(Object.fromEntries(env.map(({ key, value }) => [key, value]))).toEqual({
      A: 'mine',
      B: 'template',
      C: 'template',
      NEW: 'mine',
      GPU_COUNT: '1',
      JUPYTER_TOKEN: access_token,
      SERVICE_ACCESS_TOKEN: access_token,
      T: access_token,
    });
  });
});
