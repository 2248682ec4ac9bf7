import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { containersOf, docker, occupy } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter, fingerprintOf } from '../harness/real.js';

const LONG_MS = 180_000;

let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  real = await RealPlatform.start();
  renter = await RealRenter.on(real);
});
afterAll(() => real.stop());

async function running(fields: Record<string, unknown> = {}): Promise<InstanceBody> {
  const { id } = await renter.deploy(fields);
  return statusIs(renter.api, id, 'running', LONG_MS);
}

async function stopped(): Promise<InstanceBody> {
  const up = await running();
  await renter.api.post(`/v1/instances/${up.id}/stop`);
  await statusIs(renter.api, up.id, 'stopped', LONG_MS);
  return up;
}

it('a port that somebody else has taken refuses the start with its number, and the next start finds it free', async () => {
  const { id, ssh_port } = await stopped();
  const release = await occupy(Number(ssh_port));
  const refused = await renter.api.request('POST', `/v1/instances/${id}/start`);
  expect(refused).toMatchObject({ status: 409, body: { code: 'START_REFUSED' } });
  expect(JSON.stringify(refused.body)).toContain(String(ssh_port));
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('stopped');
  await release();
  await renter.start(id);
  expect((await statusIs(renter.api, id, 'running', LONG_MS)).ssh_port).toBe(ssh_port);
  await renter.destroy(id);
});

it('docker rm -f behind the agent’s back: the workload is lost, says so, and is never made anew', async () => {
  const { id } = await running();
  await docker.getContainer(`gpurent-${id}`).remove({ force: true, v: true });
  expect(await statusIs(renter.api, id, 'error', LONG_MS)).toMatchObject({ error_code: 'workload_lost' });
  expect(await containersOf(id)).toEqual([]);
  await renter.destroy(id);
});

it('docker rm -f of what is stopped: a start is refused with what to do', async () => {
  const { id } = await stopped();
  await docker.getContainer(`gpurent-${id}`).remove({ force: true, v: true });
  const refused = await renter.api.request('POST', `/v1/instances/${id}/start`);
  expect(refused).toMatchObject({ status: 409, body: { code: 'START_REFUSED' } });
  expect(JSON.stringify(refused.body)).toContain('destroy');
  expect(await containersOf(id)).toEqual([]);
  await renter.destroy(id);
});

it('a workload that ignores SIGTERM is stopped nevertheless, with its disk', async () => {
  const template = await real.operator.post<{ id: string }>('/v1/operator/templates', {
    name: 'Deaf',
    image: 'gpurent/sample:1',
    onstart: `trap '' TERM; touch /kept`,
    command: ['sh', '-c', `trap '' TERM; while :; do sleep 1; done`],
  });
  const up = await running({ template_id: template.id });
  await renter.api.post(`/v1/instances/${up.id}/stop`);
  await statusIs(renter.api, up.id, 'stopped', LONG_MS);
  expect((await containersOf(up.id)).map(({ State }) => State)).toEqual(['exited']);
  await renter.start(up.id);
  const again = await statusIs(renter.api, up.id, 'running', LONG_MS);
  expect(await renter.ssh(again, 'ls /kept')).toBe('/kept');
  await renter.destroy(up.id);
});

describe('kill -9 of the agent in the middle of', () => {
  const revived = async () => {
    await real.killAgent();
    await real.startAgent();
  };

  it('create: one container, up once', async () => {
    const { id } = await renter.deploy();
    await eventually('the container', async () => (await containersOf(id)).length > 0, LONG_MS);
    await revived();
    await statusIs(renter.api, id, 'running', LONG_MS);
    expect(await containersOf(id)).toHaveLength(1);
    await renter.destroy(id);
  });

  it('start: the same container, the same disk, one run', async () => {
    const { id } = await stopped();
    const [before] = await fingerprintOf(id);
    void renter.api.request('POST', `/v1/instances/${id}/start`);
    await eventually('the start', async () => (await fingerprintOf(id))[0]?.pid !== 0, LONG_MS);
    const [started] = await fingerprintOf(id);
    await revived();
    await statusIs(renter.api, id, 'running', LONG_MS);
    const [after] = await fingerprintOf(id);
    expect(after?.Id).toBe(before?.Id);
    expect(after).toEqual(started);
    await renter.destroy(id);
  });

  it('stop: it is down once, and starts again', async () => {
    const { id } = await running();
    await renter.api.post(`/v1/instances/${id}/stop`);
    await revived();
    await statusIs(renter.api, id, 'stopped', LONG_MS);
    await renter.start(id);
    await statusIs(renter.api, id, 'running', LONG_MS);
    await renter.destroy(id);
  });

  it('remove: it is gone', async () => {
    const { id } = await running();
    await renter.api.delete(`/v1/instances/${id}`);
    await revived();
    await statusIs(renter.api, id, 'destroyed', LONG_MS);
    expect(await containersOf(id)).toEqual([]);
  });
});
