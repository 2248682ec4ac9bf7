import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { StartRelay } from '../../agent/pulls/client.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { ImageCache } from '../../agent/runtime/docker/images/image-cache.js';
import { ImagePuller, type PulledImage, type PullPolicy } from '../../agent/runtime/docker/images/image-puller.js';
import { Images, isMadeHere } from '../../agent/runtime/docker/images/images.js';
import type { OnProgress } from '../../agent/runtime/workload.js';
import { pulledName } from '../../agent/runtime/docker/images/pulled-images.js';
import { eventually } from '../../scripts/eventually.js';
import { systemClock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { MANIFEST_TYPE, digestOf, fakeImage, serveHttp, type FakeServer } from '../harness/fake-registry.js';
import { ManualClock } from '../harness/manual-clock.js';
import { startRelay } from '../harness/relay.js';
import { PULLS } from '../harness/runtime.js';
import { OwnDocker } from '../rig/own-docker.js';
import { specOf } from '../suites/runtime-suite.js';

const ONLY_REGISTRY = ['127.0.0.1/32'];

const open: { stop(): void }[] = [];
let own: OwnDocker;
let engine: Engine;
let folder: string;
let file: string;
// The cache of images lets go of what anybody has pulled.
beforeAll(async () => {
  own = await OwnDocker.start();
  engine = new Engine(own.socket, systemClock);
});
afterAll(() => own.remove());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-images-'));
  file = join(folder, 'images.json');
});
afterEach(async () => {
  for (const each of open.splice(0)) each.stop();
  rmSync(folder, { recursive: true });
  const names = (await own.docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []);
  for (const name of names.filter((each) => each.includes('pull-test') || each.startsWith('127')))
    await own.docker.getImage(name).remove();
});

async function serve(...given: Parameters<typeof serveHttp>): Promise<FakeServer> {
  const server = await serveHttp(...given);
  open.push(server);
  return server;
}

/** An image of one small layer that no other test has. */
async function makeLayer(env: readonly string[] = []): Promise<ReturnType<typeof fakeImage>> {
  const packed = pack();
  packed.entry({ name: 'unique' }, createHash('sha256').update(String(performance.now())).digest('hex').repeat(1_000));
  packed.finalize();
  const parts: Buffer[] = [];
  for await (const part of packed as AsyncIterable<Buffer>) parts.push(part);
  const tar = Buffer.concat(parts);
  return fakeImage(gzipSync(tar), digestOf(tar), env);
}

/** Serves an image by any name, but what `other` answers; it returns whether it has. */
const registryOf =
  (image: ReturnType<typeof fakeImage>, other: (...given: Parameters<RequestListener>) => boolean = () => false) =>
  (...[request, response]: Parameters<RequestListener>) => {
    if (other(request, response)) return;
    const [, kind, reference = ''] = /\/(manifests|blobs)\/(.*)$/.exec(request.url ?? '') ?? [];
    const content = kind === 'manifests' ? image.manifest : image.blobs.get(reference);
    if (!content) return void response.writeHead(kind === undefined ? 200 : 404).end('{}');
    if (kind === 'manifests') {
      response.setHeader('content-type', MANIFEST_TYPE).setHeader('docker-content-digest', digestOf(content));
    }
    response.setHeader('content-length', content.length).end(request.method === 'HEAD' ? undefined : content);
  };

function puller(policy: Partial<PullPolicy> = {}, start: StartRelay = startRelay): ImagePuller {
  const whole = { limits: PULLS, allowed: ONLY_REGISTRY, freeShare: async () => 1, ...policy };
  return new ImagePuller(engine, systemClock, whole, silentLogger, start);
}
const orderOf = (image: string) => ({
  spec: specOf(image),
  onProgress: () => undefined,
  signal: new AbortController().signal,
});
const pull = (image: string, by = puller()): Promise<PulledImage> => by.pull(orderOf(image));
const tagsOf = async (id: string) => (await own.docker.getImage(id).inspect()).RepoTags;
const blobsOf = ({ asked }: FakeServer) => asked.filter(({ url }) => url.includes('/blobs/')).map(({ url }) => url);

describe('what a registry names at an address that renters may not reach', () => {
  const cases: [string, (target: FakeServer) => ReturnType<typeof registryOfTarget>][] = [
    ['the place of a layer', (target) => registryOfTarget(target, '/blobs/')],
    ['the place of a manifest', (target) => registryOfTarget(target, '/manifests/')],
    ['its token server', (target) => registryOfRealm(target)],
  ];

  function registryOfTarget(target: FakeServer, part: string) {
    return (...[request, response]: Parameters<RequestListener>): boolean => {
      if (!request.url?.includes(part)) return false;
      response.writeHead(307, { location: `${target.origin}${request.url}` }).end();
      return true;
    };
  }
  function registryOfRealm(target: FakeServer) {
    return (...[request, response]: Parameters<RequestListener>): boolean => {
      if (request.headers.authorization?.startsWith('Bearer')) return false;
      const realm = `Bearer realm="https://127.0.0.2:${target.port}/token",service="registry"`;
      response.writeHead(401, { 'www-authenticate': realm }).end();
      return true;
    };
  }

  it.each(cases)('is not asked: %s', async (_, redirecting) => {
    const image = await makeLayer();
    const target = await serve(registryOf(image), '127.0.0.2');
    const registry = await serve(registryOf(image, redirecting(target)));
    await expect(pull(`${registry.address}/pull-test:1`)).rejects.toThrow(/at an address that instances may not reach/);
    expect(target.asked).toEqual([]);
    expect(registry.asked.length).toBeGreaterThan(0);
  });

  it('is asked where it may be', async () => {
    const image = await makeLayer();
    const target = await serve(registryOf(image), '127.0.0.2');
    const registry = await serve(registryOf(image, registryOfTarget(target, '/blobs/')));
    await pull(`${registry.address}/pull-test:1`, puller({ allowed: ['127.0.0.0/8'] }));
    expect(target.asked.length).toBeGreaterThan(0);
  });
});

describe('an image that was pulled', () => {
  it('is known by a name of ours alone, and no layer of it is fetched twice', async () => {
    const image = await makeLayer();
    const registry = await serve(registryOf(image));
    const name = `${registry.address}/pull-test/app:1`;
    const before = performance.now();
    const pulled = await pull(name);
    process.stdout.write(`a small pull through a relay: ${Math.round(performance.now() - before)} ms\n`);
    expect(pulled).toMatchObject({ name: pulledName(name), digest: digestOf(image.manifest) });
    expect(pulled.name).toBe(`localhost/gpurent/pulled/127.0.0.1_${registry.port}/pull-test/app:1`);
    const { RepoTags, RepoDigests } = await own.docker.getImage(pulled.id).inspect();
    expect([RepoTags, RepoDigests]).toEqual([[pulled.name], []]);
    expect(blobsOf(registry).some((url) => url.endsWith(image.layerDigest))).toBe(true);
    const fetched = registry.asked.length;
    expect(await pull(name)).toEqual(pulled);
    expect(registry.asked.length).toBeGreaterThan(fetched);
    expect(blobsOf(registry)).toHaveLength(2);
    expect(await isMadeHere(engine, name)).toBe(false);
  });

  it('may be asked for by its digest', async () => {
    const image = await makeLayer();
    const registry = await serve(registryOf(image));
    const digest = digestOf(image.manifest);
    for (const name of [`${registry.address}/pull-test@${digest}`, `${registry.address}/pull-test:7@${digest}`]) {
      const pulled = await pull(name);
      expect(await tagsOf(pulled.id)).toEqual([pulledName(name)]);
      expect(pulled.digest).toBe(digest);
    }
    const other = `${registry.address}/pull-test@sha256:${'0'.repeat(64)}`;
    await expect(pull(other)).rejects.toThrow(/cannot be pulled: what the registry serves is not a sound image/);
  });

  it('keeps the names that this host’s owner has given it, and is no less the owner’s for it', async () => {
    const image = await makeLayer();
    const registry = await serve(registryOf(image));
    const { id } = await pull(`${registry.address}/pull-test:1`);
    await own.docker.getImage(id).tag({ repo: 'pull-test-owned', tag: '1' });
    expect(await isMadeHere(engine, 'pull-test-owned:1')).toBe(true);
    await pull(`${registry.address}/pull-test:2`);
    expect(await isMadeHere(engine, 'pull-test-owned:1')).toBe(true);
    expect((await tagsOf(id)).sort()).toEqual(
      [
        pulledName(`${registry.address}/pull-test:1`),
        pulledName(`${registry.address}/pull-test:2`),
        'pull-test-owned:1',
      ].sort(),
    );
  });

  it('fails with a reason where its relay crashes, and can be pulled again', async () => {
    const image = await makeLayer();
    let [isSlow, isReached] = [true, false];
    const registry = await serve(
      registryOf(image, ({ url }, response) => {
        if (!isSlow || !url?.endsWith(image.layerDigest)) return false;
        isReached = true;
        response.writeHead(200, { 'content-length': 1_000 }).write('first bytes');
        return true;
      }),
    );
    let pid = 0;
    const start: StartRelay = async (order) => {
      const relay = await startRelay(order);
      pid = relay.pid;
      return relay;
    };
    const by = puller({}, start);
    const failed = expect(pull(`${registry.address}/pull-test:1`, by)).rejects.toThrow(
      /cannot be pulled: what asks the registry has ended on this machine; try again/,
    );
    await eventually('the layer', () => isReached, 30_000);
    process.kill(pid, 'SIGKILL');
    await failed;
    isSlow = false;
    await pull(`${registry.address}/pull-test:1`, by);
  });

  it('brings no more bytes than the host takes', async () => {
    const image = await makeLayer();
    const registry = await serve(registryOf(image));
    const limits = { ...PULLS, mostBytes: image.manifest.length };
    await expect(pull(`${registry.address}/pull-test:1`, puller({ limits }))).rejects.toThrow(
      /larger than this machine takes/,
    );
  });
});

describe('the cache of images', () => {
  const free = { share: 1 };
  const cacheAt = (clock: ManualClock) =>
    new ImageCache(new Engine(own.socket, clock), clock, { file, freeShare: async () => free.share }, silentLogger);

  it('knows images by digest, and lets go of them and of what a crash has left, but of nothing that the owner has named', async () => {
    const required = 'cuda>=12.4 brand=tesla,driver>=470,driver<471';
    const [image, left] = [await makeLayer([`NVIDIA_REQUIRE_CUDA=${required}`]), await makeLayer()];
    const registry = await serve(registryOf(image));
    const leftRegistry = await serve(registryOf(left));
    const clock = new ManualClock();
    const cache = cacheAt(clock);
    const name = `${registry.address}/pull-test:1`;
    free.share = 1;
    const told: unknown[] = [];
    const onProgress: OnProgress = (kind, _, pulled) => void (kind === 'pulled' && told.push(pulled));
    const local = await new Images(engine, puller(), cache, 'any').fetch({ ...orderOf(name), onProgress });
    expect(local.reference).toBe(`${name}@${digestOf(image.manifest)}`);
    expect(told).toEqual([{ digest: digestOf(image.manifest), requirements: [required] }]);
    const renamed = await pull(`${leftRegistry.address}/pull-test:left`);
    await own.docker.getImage(renamed.id).tag({ repo: '127.0.0.1:1/gpurent/pulling', tag: 'left' });
    await own.docker.getImage(renamed.name).remove();
    await own.docker.getImage(local.id).tag({ repo: 'pull-test-owned', tag: '1' });

    free.share = 0.01;
    await cache.collect();
    clock.advance(2 * HOUR_MS);
    // Another agent, after the file was read again.
    const removed = await cacheAt(clock).collect();
    expect(removed).toContain(local.id);
    expect(await tagsOf(local.id)).toEqual(['pull-test-owned:1']);
    await cache.collect();
    await expect(own.docker.getImage(renamed.id).inspect()).rejects.toThrow(/no such image/i);
  });

  it('lets go of what was pulled before there were relays', async () => {
    const image = await makeLayer();
    const registry = await serve(registryOf(image));
    const stream = await own.docker.pull(`${registry.address}/pull-test:1`);
    await new Promise((resolve) => own.docker.modem.followProgress(stream, resolve));
    const { Id } = await own.docker.getImage(`${registry.address}/pull-test:1`).inspect();
    const clock = new ManualClock();
    writeFileSync(file, JSON.stringify({ [Id]: clock.now() - 2 * HOUR_MS }));
    // Its layers are there.
    const asked = blobsOf(registry).length;
    const { id } = await pull(`${registry.address}/pull-test:1`);
    expect([id, blobsOf(registry).length]).toEqual([Id, asked]);
    free.share = 0.01;
    expect(await cacheAt(clock).collect()).toEqual([Id]);
    await expect(own.docker.getImage(Id).inspect()).rejects.toThrow(/no such image/i);
  });

  it('lets go of the names that Docker gives where it pulls by itself, through a proxy', async () => {
    const image = await makeLayer();
    const registry = await serve(registryOf(image));
    const name = `${registry.address}/pull-test:1`;
    const proxied = new Engine(own.socket, systemClock);
    const info = await proxied.info();
    proxied.info = async () => Object.assign(info, { HttpsProxy: 'http://proxy.test' });
    const noRelay = () => Promise.reject(new Error('there is a relay'));
    const policy = { limits: PULLS, allowed: ONLY_REGISTRY, freeShare: async () => 1 };
    const by = (allowed: string[]) =>
      new ImagePuller(proxied, systemClock, { ...policy, allowed }, silentLogger, noRelay);
    await expect(pull(name, by([]))).rejects.toThrow(/at an address that instances may not reach/);
    const clock = new ManualClock();
    const cache = cacheAt(clock);
    free.share = 1;
    const { id } = await new Images(proxied, by(ONLY_REGISTRY), cache, 'any').fetch(orderOf(name));
    expect((await tagsOf(id)).sort()).toEqual([name, pulledName(name)].sort());
    clock.advance(2 * HOUR_MS);
    free.share = 0.01;
    expect(await cacheAt(clock).collect()).toEqual([id]);
    await expect(own.docker.getImage(id).inspect()).rejects.toThrow(/no such image/i);
  });

  it('keeps 32 names of an image', async () => {
    const image = await makeLayer();
    const registry = await serve(registryOf(image));
    const cache = cacheAt(new ManualClock());
    const names = Array.from({ length: 33 }, (_, index) => `${registry.address}/pull-test:${index}`);
    const { id } = await pull(names[0] ?? '');
    for (const name of names) {
      const [repo = '', tag = ''] = pulledName(name).split(/:(?=\d+$)/);
      await own.docker.getImage(id).tag({ repo, tag });
      await cache.fetched({ id, name: pulledName(name), digest: 'sha256:1' });
    }
    const kept = await tagsOf(id);
    expect(kept).toHaveLength(32);
    expect(kept).not.toContain(pulledName(names[0] ?? ''));
  });
});
