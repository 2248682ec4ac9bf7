import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { query } from '../../control-plane/store/sql.js';
import { NOWHERE, World, type DeployBody, type Refused } from './world.js';

let world: World;
let body: DeployBody;
beforeAll(async () => {
  world = await World.make();
  ({ body } = await world.host({ gpus: 2, diskGb: 100, cudaVersion: '12.10' }));
});
afterAll(() => world.stop());

const machine = () => `/v1/operator/machines/${world.test.lastAgent.hostId}`;
const dispute = (method: string, { organizationId }: Renter) =>
  world.test.operator.request(method, `/v1/operator/organizations/${organizationId}/dispute`);

describe('Errors: deploy refusals', () => {
  const refused = (fields: object = {}, api = world.admin.api) =>
    world.refused(api, 'POST', '/v1/instances', { ...body, ...fields });
  const withTemplate = async (fields: object) => ({
    template_id: await world.test.template(fields as Record<string, unknown>),
  });

  it('402 INSUFFICIENT_BALANCE: balance_micro, required_micro', async () => {
    const poor = await world.test.renter(1_000_999);
    expect(await refused({}, poor.api)).toMatchObject({
      status: 402,
      code: 'INSUFFICIENT_BALANCE',
      balance_micro: 1_000_999,
      required_micro: 1_001_000,
    });
  });
  it('402 PAYMENTS_FROZEN', async () => {
    const renter = await world.test.renter();
    await dispute('POST', renter);
    expect(await refused({}, renter.api)).toMatchObject({ status: 402, code: 'PAYMENTS_FROZEN' });
  });
  it('409 OFFER_UNAVAILABLE: unknown, withdrawn, or no free unit left', async () => {
    expect(await refused({ offer_id: NOWHERE })).toMatchObject({ status: 409, code: 'OFFER_UNAVAILABLE' });
    const withdrawn = await world.test.offer(world.test.lastAgent);
    await world.test.operator.delete(`/v1/operator/offers/${withdrawn}`);
    expect(await refused({ offer_id: withdrawn })).toMatchObject({ status: 409, code: 'OFFER_UNAVAILABLE' });
    const { body: sold } = await world.host({ gpus: 1 });
    await world.running(sold);
    expect(await refused(sold)).toMatchObject({ status: 409, code: 'OFFER_UNAVAILABLE' });
  });
  it('409 MACHINE_IN_MAINTENANCE: next_maintenance', async () => {
    const { body: here } = await world.host();
    const at = (minutes: number) => new Date(world.test.clock.now() + minutes * 60_000).toISOString();
    const window = { starts_at: at(59), ends_at: at(120) };
    await world.test.operator.request('PUT', `${machine()}/maintenance`, window);
    expect(await refused(here)).toMatchObject({
      status: 409,
      code: 'MACHINE_IN_MAINTENANCE',
      next_maintenance: window.starts_at,
    });
  });
  it('409 MACHINE_DISK_EXHAUSTED: available_disk_gb, requested_disk_gb', async () => {
    const { body: here } = await world.host({ gpus: 2, diskGb: 25 });
    await world.running(here);
    expect(await refused({ ...here, disk_gb: 16 })).toMatchObject({
      status: 409,
      code: 'MACHINE_DISK_EXHAUSTED',
      available_disk_gb: 15,
      requested_disk_gb: 16,
    });
  });
  it('409 INSTANCE_LIMIT_REACHED: limit; stopped and error ones count', async () => {
    const { agent, body: here } = await world.host({ gpus: 26 });
    const renter = await world.test.renter();
    const ids: string[] = [];
    for (let count = 0; count < 25; count++) ids.push((await world.running(here, renter.api)).id);
    const [stopped = '', failed = '', destroyed = ''] = ids;
    await renter.api.post(`/v1/instances/${stopped}/stop`);
    await statusIs(renter.api, stopped, 'stopped');
    agent.exit(failed, { code: 1 });
    await statusIs(renter.api, failed, 'error');
    expect(await refused(here, renter.api)).toMatchObject({ status: 409, code: 'INSTANCE_LIMIT_REACHED', limit: 25 });
    await renter.api.delete(`/v1/instances/${destroyed}`);
    await statusIs(renter.api, destroyed, 'destroyed');
    expect(await world.deploys(here, renter.api)).toBe(201);
  });
  it('409 OFFER_NOT_PINNABLE', async () => {
    const { body: here } = await world.host();
    await world.test.operator.delete(machine());
    expect(await refused(here)).toMatchObject({ status: 409, code: 'OFFER_NOT_PINNABLE' });
  });
  it('422 DISK_TOO_LARGE: max_disk_gb', async () => {
    expect(await refused({ disk_gb: 101 })).toMatchObject({ status: 422, code: 'DISK_TOO_LARGE', max_disk_gb: 100 });
  });
  it('422 OFFER_NOT_VM_CAPABLE', async () => {
    const vm = await withTemplate({ kind: 'vm' });
    expect(await refused(vm)).toMatchObject({ status: 422, code: 'OFFER_NOT_VM_CAPABLE' });
  });
  it('422 TEMPLATE_COMING_SOON', async () => {
    const soon = await withTemplate({ coming_soon: true });
    expect(await refused(soon)).toMatchObject({ status: 422, code: 'TEMPLATE_COMING_SOON' });
  });
  it('422 TEMPLATE_CUDA_TOO_NEW: only up to its cuda_max, compared as numbers', async () => {
    const old = await withTemplate({ cuda_max: '12.9' });
    expect(await refused(old)).toMatchObject({ status: 422, code: 'TEMPLATE_CUDA_TOO_NEW' });
    const { body: here } = await world.host({ cudaVersion: '12.10' });
    expect(await world.deploys({ ...here, ...(await withTemplate({ cuda_max: '12.10' })) })).toBe(201);
  });
  it('422 TEMPLATE_CUDA_TOO_OLD: from its cuda_min on, compared as numbers', async () => {
    const recent = await withTemplate({ cuda_min: '99.9' });
    expect(await refused(recent)).toMatchObject({ status: 422, code: 'TEMPLATE_CUDA_TOO_OLD' });
    const { body: here } = await world.host({ cudaVersion: '12.10' });
    expect(await world.deploys({ ...here, ...(await withTemplate({ cuda_min: '12.9' })) })).toBe(201);
  });
  it('422 TEMPLATE_ARCH_UNSUPPORTED', async () => {
    const arm = await withTemplate({ arch: 'aarch64' });
    expect(await refused(arm)).toMatchObject({ status: 422, code: 'TEMPLATE_ARCH_UNSUPPORTED' });
  });
  it('422 TEMPLATE_REQUIRES_OWNER: pulls from a private registry; only its owning organization may deploy it', async () => {
    const registry = { username: 'u', password: 'p' };
    const shared = { name: 'shared', image: 'private:1', visibility: 'public', registry };
    const { id } = await world.stranger.api.post<{ id: string }>('/v1/templates', shared);
    expect(await refused({ template_id: id })).toMatchObject({ status: 422, code: 'TEMPLATE_REQUIRES_OWNER' });
    const { body: here } = await world.host();
    expect(await world.deploys({ ...here, template_id: id }, world.stranger.api)).toBe(201);
  });
  it('404 TEMPLATE_NOT_FOUND: does not exist, is not visible to the organization, or is deactivated', async () => {
    const foreign = await world.stranger.api.post<{ id: string }>('/v1/templates', { name: 'theirs', image: 'i' });
    const own = await world.admin.api.post<{ id: string }>('/v1/templates', { name: 'gone', image: 'i' });
    await world.admin.api.delete(`/v1/templates/${own.id}`);
    for (const template_id of [NOWHERE, foreign.id, own.id]) {
      expect(await refused({ template_id })).toMatchObject({ status: 404, code: 'TEMPLATE_NOT_FOUND' });
    }
  });
  it('404 SSH_KEY_NOT_FOUND: not attachable by this credential, or does not exist', async () => {
    for (const ssh_key_id of [await world.sshKey(world.stranger), NOWHERE]) {
      expect(await refused({ ssh_key_id })).toMatchObject({ status: 404, code: 'SSH_KEY_NOT_FOUND' });
    }
  });
  it('come in their order: what is put right one by one meets the next', async () => {
    const renter = await world.test.renter(0);
    const { agent, body: here } = await world.host({ gpus: 1, diskGb: 40, cudaVersion: '12.4' });
    const offerId = await world.test.offer(agent, 1, 2_000_000);
    const template = (fields: object) => withTemplate(fields).then(({ template_id }) => template_id);
    const worst = { coming_soon: true, arch: 'aarch64', cuda_max: '11.8', kind: 'vm' };
    const request: Record<string, unknown> = {
      offer_id: NOWHERE,
      template_id: NOWHERE,
      disk_gb: 50,
      ssh_key_id: NOWHERE,
    };
    const code = async () => (await refused(request, renter.api)).code;
    await dispute('POST', renter);
    const suspension = `/v1/operator/organizations/${renter.organizationId}`;
    await world.test.operator.post(`${suspension}/suspend`, { reason: 'abuse' });
    expect(await code()).toBe('ORGANIZATION_SUSPENDED');
    await world.test.operator.post(`${suspension}/restore`, { reason: 'settled' });
    expect(await code()).toBe('TEMPLATE_NOT_FOUND');
    request['template_id'] = await template(worst);
    expect(await code()).toBe('TEMPLATE_COMING_SOON');
    request['template_id'] = await template({ ...worst, coming_soon: false });
    expect(await code()).toBe('TEMPLATE_ARCH_UNSUPPORTED');
    request['template_id'] = await template({ cuda_max: '11.8', kind: 'vm' });
    expect(await code()).toBe('OFFER_UNAVAILABLE');
    request['offer_id'] = offerId;
    request['max_gpu_per_hour_micro'] = 1;
    expect(await code()).toBe('OFFER_TOO_EXPENSIVE');
    delete request['max_gpu_per_hour_micro'];
    expect(await code()).toBe('OFFER_NOT_VM_CAPABLE');
    request['template_id'] = await template({ cuda_max: '11.8' });
    expect(await code()).toBe('TEMPLATE_CUDA_TOO_NEW');
    request['template_id'] = await template({ cuda_min: '12.5' });
    expect(await code()).toBe('TEMPLATE_CUDA_TOO_OLD');
    request['template_id'] = world.templateId;
    expect(await code()).toBe('DISK_TOO_LARGE');
    request['disk_gb'] = 35;
    expect(await code()).toBe('SSH_KEY_NOT_FOUND');
    delete request['ssh_key_id'];
    const window = { starts_at: new Date(world.test.clock.now()), ends_at: new Date(world.test.clock.now() + 60_000) };
    await world.test.operator.request('PUT', `${machine()}/maintenance`, window);
    expect(await code()).toBe('MACHINE_IN_MAINTENANCE');
    await world.test.operator.delete(`${machine()}/maintenance`);
    const { id } = await world.running(here);
    agent.exit(id, { code: 1 });
    await statusIs(world.admin.api, id, 'error');
    expect(await code()).toBe('MACHINE_DISK_EXHAUSTED');
    request['disk_gb'] = 30;
    expect(await code()).toBe('PAYMENTS_FROZEN');
    await dispute('DELETE', renter);
    expect(await code()).toBe('INSUFFICIENT_BALANCE');
    const credit = { amount_micro: 3_000_000, reason: 'test' };
    const caps = { burn_per_hour_micro: 1, day_micro: null, month_micro: null };
    await renter.api.request('PUT', '/v1/orgs/current/spend-caps', caps);
    expect(await code()).toBe('INSUFFICIENT_BALANCE');
    await world.test.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, credit);
    expect(await code()).toBe('SPEND_LIMIT_REACHED');
    await renter.api.request('PUT', '/v1/orgs/current/spend-caps', { ...caps, burn_per_hour_micro: null });
    expect(await world.deploys(request, renter.api)).toBe(201);
  });
});

describe('Errors: instance operations', () => {
  const ask = (id: string, action: string) => world.refused(world.admin.api, 'POST', `/v1/instances/${id}/${action}`);

  it('404 INSTANCE_NOT_FOUND: unknown id, or instance of another organization', async () => {
    const { body: here } = await world.host();
    const { id } = await world.running(here, world.stranger.api);
    for (const [method, suffix] of [
      ['GET', ''],
      ['GET', '/logs'],
      ['GET', '/events'],
      ['POST', '/stop'],
      ['POST', '/start'],
      ['DELETE', ''],
    ] as const) {
      const [foreign, unknown] = [id, NOWHERE].map((of) =>
        world.refused(world.admin.api, method, `/v1/instances/${of}${suffix}`),
      );
      const [one, other] = [await foreign, await unknown];
      expect(one).toMatchObject({ status: 404, code: 'INSTANCE_NOT_FOUND' });
      expect({ ...one, request_id: '' }).toEqual({ ...other, request_id: '' });
    }
  });
  it('409 INVALID_STATE: the message names the status', async () => {
    const { body: here } = await world.host();
    const { id } = await world.running(here);
    const refused = await ask(id, 'start');
    expect(refused).toMatchObject({ status: 409, code: 'INVALID_STATE' });
    expect(refused.message).toContain('running');
  });
  it('402 INSUFFICIENT_BALANCE: start, the balance does not cover one hour with this instance running', async () => {
    const { body: here } = await world.host();
    const renter = await world.test.renter(1_001_000);
    const { id } = await world.stopped(here, renter.api);
    setBalance(renter, 1_000_999);
    const refused = await world.refused(renter.api, 'POST', `/v1/instances/${id}/start`);
    expect(refused).toMatchObject({ status: 402, code: 'INSUFFICIENT_BALANCE', required_micro: 1_001_000 });
  });
  it('402 PAYMENTS_FROZEN: start while a payment dispute is open', async () => {
    const { body: here } = await world.host();
    const renter = await world.test.renter();
    const { id } = await world.stopped(here, renter.api);
    await dispute('POST', renter);
    await settled();
    const refused = await world.refused(renter.api, 'POST', `/v1/instances/${id}/start`);
    expect(refused).toMatchObject({ status: 402, code: 'PAYMENTS_FROZEN' });
  });
  it('409 CAPACITY_UNAVAILABLE: GPUs were released and another renter now uses one of them', async () => {
    const { body: here } = await world.host();
    const renter = await world.test.renter();
    const { id } = await world.running(here, renter.api);
    await dispute('POST', renter);
    await renter.api.post(`/v1/instances/${id}/stop`);
    expect(await statusIs(renter.api, id, 'stopped')).toMatchObject({ gpus_released: true, gpu_release: 'released' });
    await dispute('DELETE', renter);
    await world.running(here);
    const refused = await world.refused(renter.api, 'POST', `/v1/instances/${id}/start`);
    expect(refused).toMatchObject({ status: 409, code: 'CAPACITY_UNAVAILABLE' });
    expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('stopped');
  });
  it('409 HOST_UNREACHABLE: the instance’s machine is not connected', async () => {
    const { agent, body: here } = await world.host();
    const { id } = await world.stopped(here);
    agent.disconnect();
    await eventually('the host to be away', async () => {
      return !(await world.test.operator.get<{ connected: boolean }>(machine())).connected;
    });
    expect(await ask(id, 'start')).toMatchObject({ status: 409, code: 'HOST_UNREACHABLE' });
    expect((await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('stopped');
  });
  it.each([
    ['refused the resume', 'BUSY', 'the host has no room'],
    ['no longer holds the workload', 'WORKLOAD_GONE', 'the host no longer holds the workload; destroy and redeploy'],
  ])('409 START_REFUSED: host %s (the message says which)', async (_, code, message) => {
    const { agent, body: here } = await world.host();
    const { id } = await world.stopped(here);
    agent.automatic = false;
    const answer = world.admin.api.request<Refused>('POST', `/v1/instances/${id}/start`);
    agent.refuse(await eventually('the start', () => agent.held[0]), code, message);
    expect(await answer).toMatchObject({ status: 409, body: { code: 'START_REFUSED', message } });
    expect((await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('stopped');
  });
  it('503 START_UNAVAILABLE: resume could not be completed right now', async () => {
    const { agent, body: here } = await world.host();
    const { id } = await world.stopped(here);
    agent.automatic = false;
    const answer = world.admin.api.request<Refused>('POST', `/v1/instances/${id}/start`);
    await eventually('the start', () => agent.held[0]);
    world.test.clock.advance(10_000);
    expect(await answer).toMatchObject({ status: 503, body: { code: 'START_UNAVAILABLE' } });
    expect((await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('stopped');
  });
  it('422: logs with `tail` outside 1 to 1000', async () => {
    const { body: here } = await world.host();
    const { id } = await world.running(here);
    for (const tail of [0, 1_001]) {
      const refused = await world.refused(world.admin.api, 'GET', `/v1/instances/${id}/logs?tail=${tail}`);
      expect(refused).toMatchObject({ status: 422, code: 'VALIDATION_FAILED', details: [{ path: 'tail' }] });
    }
  });
});

describe('Errors: instance error_code', () => {
  it('provision_failed', async () => {
    const { agent, body: here } = await world.host();
    agent.automatic = false;
    const { id } = await world.admin.api.post<InstanceBody>('/v1/instances', here);
    agent.fail(await eventually('the command', () => agent.held[0]), 'IMAGE_NOT_FOUND', 'there is no such image');
    expect(await statusIs(world.admin.api, id, 'error')).toMatchObject({
      error_code: 'provision_failed',
      error_message: 'there is no such image',
    });
  });
  it('workload_completed', async () => {
    const { agent, body: here } = await world.host();
    const { id } = await world.running(here);
    agent.exit(id, { code: 0 });
    expect(await statusIs(world.admin.api, id, 'error')).toMatchObject({ error_code: 'workload_completed' });
  });
  it('stop_timed_out: on a running instance whose stop did not land', async () => {
    const { agent, body: here } = await world.host();
    const { id } = await world.running(here);
    agent.automatic = false;
    await world.admin.api.post(`/v1/instances/${id}/stop`);
    world.test.advance(30 * MINUTE_MS);
    const instance = await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`);
    expect(instance).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
  });
  it('start_timed_out: on a stopped instance whose start did not land', async () => {
    const { agent, body: here } = await world.host();
    const { id } = await world.stopped(here);
    agent.automatic = false;
    const answer = world.admin.api.request('POST', `/v1/instances/${id}/start`);
    const start = await eventually('the start', () => agent.held[0]);
    agent.accept(start);
    await answer;
    world.test.advance(10 * MINUTE_MS - 1);
    expect((await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('starting');
    world.test.advance(1);
    const instance = await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`);
    expect(instance).toMatchObject({
      status: 'stopped',
      error_code: 'start_timed_out',
      allowed_actions: ['start', 'destroy'],
    });
    const passing = { clock: world.test, stepMs: 1_000, parties: [() => agent.roundTrip()] };
    const undoing = await advanceUntil('the undoing', passing, () =>
      agent.held.find(({ desired }) => desired === 'stopped'),
    );
    expect(undoing.sequence).toBeGreaterThan(start.sequence);
  });
  it('gpus_unavailable', async () => {
    const { agent, body: here } = await world.host();
    const { id } = await world.stopped(here);
    agent.automatic = false;
    const answer = world.admin.api.request('POST', `/v1/instances/${id}/start`);
    const command = await eventually('the start', () => agent.held[0]);
    agent.accept(command);
    await answer;
    agent.fail(command, 'GPUS_UNAVAILABLE', 'a GPU has fallen off the bus');
    expect(await statusIs(world.admin.api, id, 'stopped')).toMatchObject({
      error_code: 'gpus_unavailable',
      error_message: 'a GPU has fallen off the bus',
    });
  });
});

function setBalance({ organizationId }: Renter, balance_micro: number): void {
  world.test.core.platform.store.transact((tx) =>
    tx.run(query.updateTable('organizations').set({ balance_micro }).where('id', '=', organizationId)),
  );
}

/** Until no command waits for its host. */
function settled(): Promise<unknown> {
  return eventually('every command to be answered', () =>
    world.test.core.platform.store.transact(
      (tx) => tx.all(query.selectFrom('commands').select('id').where('state', '=', 'open')).length === 0,
    ),
  );
}
