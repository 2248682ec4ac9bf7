import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { inspectImage, isMadeHere, isTakenFromHost, readImage } from '../../agent/runtime/docker/images/images.js';
import type { StartRelay } from '../../agent/pulls/client.js';
import { startFailureOf } from '../../agent/runtime/docker/containers/start-failure.js';
import { ImagePuller } from '../../agent/runtime/docker/images/image-puller.js';
import { eventually } from '../../scripts/eventually.js';
import { systemClock, type Clock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';
import { PULLS } from '../harness/runtime.js';
import { specOf } from '../suites/runtime-suite.js';

let folder: string;
const servers: Server[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-docker-'));
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(folder, { recursive: true });
});

async function listen(at: object, handle: RequestListener): Promise<Server> {
  const server = createServer(handle);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(at, resolve));
  return server;
}

/** A Docker Engine that gives every request this answer; answers what was asked of it. */
async function engineThat(
  handle: RequestListener,
  clock: Clock = systemClock,
): Promise<{ engine: Engine; asked: string[] }> {
  const path = join(folder, 'docker.sock');
  const asked: string[] = [];
  await listen({ path }, (request, response) => {
    asked.push(request.url ?? '');
    handle(request, response);
  });
  return { engine: new Engine(path, clock), asked };
}

const noRelay = () => Promise.reject(new Error('spawn EAGAIN'));

function pullerOn(engine: Engine, startRelay: StartRelay, clock: Clock = systemClock): ImagePuller {
  const policy = { limits: PULLS, allowed: [], freeShare: async () => 1 };
  return new ImagePuller(engine, clock, policy, silentLogger, startRelay);
}

const orderOf = (image: string, { signal } = new AbortController()) => ({
  spec: specOf(image),
  onProgress: () => undefined,
  signal,
});

it('counts as away once it takes no new connection, also while it answers on open ones', async () => {
  const { engine } = await engineThat((_, response) => response.end('{}'));
  await engine.info();
  expect(await engine.isAvailable()).toBe(true);
  // That of the HTTP server ends open connections, too.
  NetServer.prototype.close.call(servers[0]);
  expect(await engine.info()).toEqual({});
  expect(await engine.isAvailable()).toBe(false);
});

it('is not followed to another host, or by another protocol', async () => {
  const visits: string[] = [];
  const elsewhere = await listen({ host: '127.0.0.1', port: 0 }, (request, response) => {
    visits.push(request.url ?? '');
    response.end('{}');
  });
  const { port } = elsewhere.address() as AddressInfo;
  for (const location of [`http://127.0.0.1:${port}/x`, `//127.0.0.1:${port}/x`, 'gopher://127.0.0.1/', 'https://[']) {
    const { engine } = await engineThat((_, response) => response.writeHead(301, { location }).end());
    await expect(inspectImage(engine, 'debian:1')).rejects.toThrow();
    servers.pop()?.close();
  }
  expect(visits).toEqual([]);
});

it.each(['../info?x=', '../127.0.0.1:2375/x?x=', 'get?names=debian&x=', '..', 'a/../../info', 'a b', '%2e%2e/info'])(
  'is not asked about an image that is named %s',
  async (name) => {
    const { engine, asked } = await engineThat((_, response) => response.end('{}'));
    const refusal = { code: 'IMAGE_UNAVAILABLE' };
    await expect(readImage(engine, name)).rejects.toMatchObject(refusal);
    await expect(isMadeHere(engine, name)).rejects.toMatchObject(refusal);
    expect(asked).toEqual([]);
  },
);

it('tells what was made here from what was pulled, whatever it is called while it is pulled again', async () => {
  const digest = `sha256:${'a1'.repeat(32)}`;
  const relayed = `127.0.0.1:5000/gpurent/pulling@${digest}`;
  let digests = [relayed];
  const { engine } = await engineThat((_, response) => {
    response.end(JSON.stringify({ Id: digest, RepoTags: ['team/app:1'], RepoDigests: digests }));
  });
  expect(await isMadeHere(engine, 'team/app:1')).toBe(true);
  digests = [relayed, `team/app@${digest}`];
  expect(await isMadeHere(engine, 'team/app:1')).toBe(false);
});

it('takes what its owner has named from the host, also where Docker kept the digest of a registry', async () => {
  const digest = `sha256:${'a1'.repeat(32)}`;
  const { engine } = await engineThat((_, response) => {
    response.end(JSON.stringify({ Id: digest, RepoTags: ['debian:12'], RepoDigests: [`debian@${digest}`] }));
  });
  expect(await isTakenFromHost(engine, ['debian:12'], 'debian:12')).toBe(true);
  expect(await isTakenFromHost(engine, [digest], digest)).toBe(false);
  expect(await isTakenFromHost(engine, ['debian:11'], 'debian:12')).toBe(false);
  expect(await isTakenFromHost(engine, 'any', 'debian:12')).toBe(false);
});

it('gives nobody what another pull has just brought', async () => {
  const { engine } = await engineThat((_, response) => {
    const names = ['127.0.0.1:5000/gpurent/pulling:1', '127.0.0.1:5000/gpurent/pulling:latest'];
    response.end(JSON.stringify({ Id: `sha256:${'a1'.repeat(32)}`, RepoTags: names, RepoDigests: [] }));
  });
  for (const name of ['127.0.0.1:5000/gpurent/pulling:1', '127.0.0.1:5000/gpurent/pulling'])
    expect(await isMadeHere(engine, name)).toBe(false);
});

it('is not asked to pull where no relay can be started', async () => {
  const { engine, asked } = await engineThat((_, response) => response.end('{}'));
  const puller = pullerOn(engine, noRelay);
  await expect(puller.pull(orderOf('team/app:1'))).rejects.toThrow(
    /what asks the registry does not start on this machine/,
  );
  expect(asked).toEqual(['/info']);
});

it('is not asked to pull through a proxy from a registry whose name, in whatever case, leads to this host', async () => {
  const { engine, asked } = await engineThat((_, response) => response.end('{"HttpsProxy":"http://proxy.test"}'));
  const puller = pullerOn(engine, noRelay);
  for (const image of ['LOCALHOST/team/app:1', 'localhost:5000/app', '[::1]/app']) {
    await expect(puller.pull(orderOf(image))).rejects.toThrow(/at an address that instances may not reach/);
  }
  expect(asked).toEqual(['/info', '/info', '/info']);
});

it.each([
  [29_999, 'IMAGE_UNAVAILABLE'],
  [30_000, 'IMAGE_TOO_SLOW'],
])('that fails a pull after %i ms has it fail with %s: GPUs have waited for it', async (tookMs, code) => {
  const clock = new ManualClock();
  const { engine } = await engineThat(({ url = '' }, response) => {
    if (url.startsWith('/info')) return void response.end('{}');
    clock.advance(tookMs);
    response.end(`${JSON.stringify({ error: 'not found' })}\n`);
  }, clock);
  const relay = { port: 40_001, pid: 0, ended: new AbortController().signal, end: () => undefined };
  const puller = pullerOn(engine, async () => relay, clock);
  await expect(puller.pull(orderOf('team/app:1'))).rejects.toMatchObject({ code });
});

it('is asked for 16 pulls at once at most, and who waits is told so', async () => {
  const { engine } = await engineThat((_, response) => response.end('{}'));
  const started: (() => void)[] = [];
  const puller = pullerOn(engine, () => new Promise((_, reject) => started.push(() => reject(new Error('no relay')))));
  const told: string[] = [];
  const pull = (until?: AbortController) => {
    const onProgress = (kind: string, message: string) => void told.push(`${kind}: ${message}`);
    return puller.pull({ ...orderOf('team/app:1', until), onProgress }).catch(String);
  };
  const all = Array.from({ length: 16 }, () => pull());
  const given = new AbortController();
  const [givenUp, next] = [pull(given), pull()];
  await eventually('sixteen', () => started.length === 16);
  given.abort('given up');
  expect(await givenUp).toBe('given up');
  expect(started).toHaveLength(16);
  const waits = 'waiting: it waits for its turn: this host is pulling 16 images already';
  expect(told).toEqual([waits, waits]);
  started[0]?.();
  await eventually('the next', () => started.length === 17);
  for (const fail of started) fail();
  expect(new Set(await Promise.all([...all, next])).size).toBe(1);
});

it('is asked again for an image whose download was another pull’s, which has ended', async () => {
  const ports = [40_001, 40_002, 40_003, 40_004];
  let failures = 2;
  const { engine, asked } = await engineThat(({ url = '', method }, response) => {
    if (url.startsWith('/info')) return void response.end('{}');
    if (method === 'POST' && url.startsWith('/images/create')) {
      const other = `Get "http://127.0.0.1:39999/v2/gpurent/pulling/blobs/sha256:1": connect: connection refused`;
      return void response.end(failures-- > 0 ? `${JSON.stringify({ error: other })}\n` : '{"status":"done"}\n');
    }
    response.end(JSON.stringify({ Id: `sha256:${'a1'.repeat(32)}`, Size: 1, RepoDigests: [] }));
  });
  const ended: number[] = [];
  const start: StartRelay = async () => {
    const port = ports.shift() ?? 0;
    return { port, pid: 0, ended: new AbortController().signal, end: () => void ended.push(port) };
  };
  const puller = pullerOn(engine, start);
  const order = orderOf('team/app:1');
  expect(await puller.pull(order)).toMatchObject({ name: 'localhost/gpurent/pulled/docker.io/team/app:1' });
  expect(asked.filter((url) => url.startsWith('/images/create'))).toHaveLength(3);
  expect(ended).toEqual([40_001, 40_002, 40_003]);
  failures = 9;
  ports.push(40_005, 40_006);
  await expect(puller.pull(order)).rejects.toThrow(/the registry cannot be reached/);
  expect(ended).toHaveLength(6);
});

it.each([
  [
    'nvidia-container-cli: requirement error: unsatisfied condition: cuda>=99.0, please update your driver to a newer version, or use an earlier cuda container: unknown',
    'the image requires cuda>=99.0 (NVIDIA_REQUIRE_CUDA), and the NVIDIA driver',
  ],
  ['nvidia-container-runtime-hook: unsatisfied condition: cuda>=12.8 (12.4)', 'requires cuda>=12.8 (12.4) ('],
  ['nvidia: unsatisfied condition: brand = tesla\u001b[31m', 'requires brand = tesla ('],
  [`nvidia: unsatisfied condition: ${'x'.repeat(5_000)}`, `requires ${'x'.repeat(100)} (`],
  ['runc: unsatisfied condition: cuda>=99.0', 'could not be started: failed to create task'],
  ['driver failed: Bind for 0.0.0.0:40001 failed: port is already allocated', 'a port of the workload is taken'],
])('what Docker says of a container that does not start is said to the renter in words: %s', async (said, told) => {
  const { engine } = await engineThat((_, response) => {
    const message = `failed to create task for container: OCI runtime create failed: ${said}`;
    response.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify({ message }));
  });
  const failure = await engine
    .call('start', 10_000, (docker) => docker.getContainer('gpurent-a').start())
    .then(() => undefined, startFailureOf);
  expect(failure?.message).toContain(told);
  expect(failure?.code).toBe(told.includes('port') ? 'PORT_TAKEN' : 'CONTAINER_FAILED');
});
