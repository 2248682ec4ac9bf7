import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import { ImageCache } from '../../agent/runtime/docker/images/image-cache.js';
import { pulledName } from '../../agent/runtime/docker/images/pulled-images.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { silentLogger } from '../../shared/logger.js';
import { statusIs } from '../harness/control-plane.js';
import { DOCKER_SOCKET, SAMPLE_IMAGE, docker, makeImage } from '../harness/docker.js';
import { ManualClock } from '../harness/manual-clock.js';
import { RealPlatform, RealRenter } from '../harness/real.js';
import { Registry } from '../rig/registry.js';

const LONG_MS = 180_000;

let registry: Registry;
let real: RealPlatform;
let renter: RealRenter;
let image: string;

beforeAll(async () => {
  registry = await Registry.start();
  image = await registry.take(await makeImage('gpurent/private', ['ENV PRIVATE=1']), 'private/app');
  await docker.getImage('gpurent/private:1').remove();
  real = await RealPlatform.start({
    agentEnv: { GPURENT_AGENT_EGRESS_ALLOW: '127.0.0.0/8' },
  });
  renter = await RealRenter.on(real);
});
afterAll(async () => {
  await real.stop();
  registry.stop();
});

async function deploy(password: string): Promise<string> {
  const registryLogin = { username: Registry.USER.username, password };
  const { id: template_id } = await renter.api.post<{ id: string }>('/v1/templates', {
    name: 'Private',
    image,
    registry: registryLogin,
  });
  return (await renter.deploy({ template_id })).id;
}
const events = async (id: string) =>
  (await renter.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`)).items;
const isThere = (name: string) =>
  docker
    .getImage(name)
    .inspect()
    .then(
      () => true,
      () => false,
    );

describe('an image of a private registry', () => {
  it('is fetched with its password, told of, and noted by its digest', async () => {
    const id = await deploy(Registry.USER.password);
    const up = await statusIs(renter.api, id, 'running', LONG_MS);
    expect(await renter.ssh(up, 'echo $PRIVATE')).toBe('1');
    const told = await events(id);
    expect(told.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['pulling', 'pulled', 'running']));
    expect(told.find(({ kind }) => kind === 'running')?.message).toMatch(/private\/app:1@sha256:[0-9a-f]{64}/);
    await renter.destroy(id);
  });

  it('is not had with a wrong one, also where the host has it', async () => {
    expect(await isThere(pulledName(image))).toBe(true);
    const id = await deploy('a wrong password');
    const failed = await statusIs(renter.api, id, 'error', LONG_MS);
    expect(failed).toMatchObject({ error_code: 'provision_failed' });
    expect(failed.error_message).toMatch(/cannot be pulled: .*\(unauthorized\)/);
    expect(JSON.stringify(await events(id))).not.toContain('a wrong password');
    await renter.destroy(id);
  });
});

describe('the cache of images', () => {
  it('is kept, until the disk is short and nobody uses them; others’ images are left alone', async () => {
    const file = real.path('agent/images.json');
    expect(existsSync(file)).toBe(true);
    const clock = new ManualClock();
    let free = 0.5;
    const engine = new Engine(DOCKER_SOCKET, clock);
    const cache = new ImageCache(engine, clock, { file, freeShare: async () => free }, silentLogger);
    clock.step(Date.now() + DAY_MS - clock.now());
    expect(await cache.collect()).toEqual([]);
    expect(await isThere(pulledName(image))).toBe(true);

    free = 0.01;
    const id = await deploy(Registry.USER.password);
    await statusIs(renter.api, id, 'running', LONG_MS);
    expect(await cache.collect()).toEqual([]);
    await renter.destroy(id);
    expect(await cache.collect()).toHaveLength(1);
    expect(await isThere(pulledName(image))).toBe(false);
    expect(await isThere(SAMPLE_IMAGE)).toBe(true);
  });
});
