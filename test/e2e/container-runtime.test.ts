import { afterAll, beforeAll, expect, it } from 'vitest';
import { statusIs } from '../harness/control-plane.js';
import { RealPlatform, RealRenter } from '../harness/real.js';
import { OwnDocker } from '../rig/own-docker.js';

const LONG_MS = 180_000;

let own: OwnDocker;
let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  own = await OwnDocker.start({ runtimes: { crun: '/usr/bin/crun' } });
  real = await RealPlatform.start({
    dockerSocket: own.socket,
    agentEnv: { GPURENT_AGENT_CONTAINER_RUNTIME: 'crun' },
  });
  renter = await RealRenter.on(real);
});
afterAll(async () => {
  await real.stop();
  await own.remove();
});

it('another runtime that Docker knows runs containers: SSH, their disk and their end are as ever', async () => {
  const { id } = await renter.deploy();
  const up = await statusIs(renter.api, id, 'running', LONG_MS);
  const [container] = await own.docker.listContainers({ filters: { label: [`gpurent.instance=${id}`] } });
  const { HostConfig } = await own.docker.getContainer(container?.Id ?? '').inspect();
  expect(HostConfig.Runtime).toBe('crun');
  await renter.ssh(up, 'echo kept > /mine');
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped', LONG_MS);
  await renter.start(id);
  const again = await statusIs(renter.api, id, 'running', LONG_MS);
  expect(await renter.ssh(again, 'cat /mine')).toBe('kept');
  await renter.destroy(id);
});
