import { createHash } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { Failure } from '../../agent/domain/failure.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { ImagePuller, type PullPolicy } from '../../agent/runtime/docker/images/image-puller.js';
import { systemClock, type Clock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { DOCKER_SOCKET, SAMPLE_IMAGE, docker } from '../harness/docker.js';
import { ManualClock } from '../harness/manual-clock.js';
import { startRelay } from '../harness/relay.js';
import { PULLS } from '../harness/runtime.js';
import { Registry } from '../rig/registry.js';
import { specOf } from '../suites/runtime-suite.js';

const LOOPBACK = ['127.0.0.0/8'];
const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';

let server: Server | undefined;
let asked: string[] = [];
/** What has dripped since the test began. */
let drops = 0;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  asked = [];
  drops = 0;
});

/** A registry on loopback. Answers its address. */
function serve(listener: RequestListener): Promise<string> {
  const made = createServer((request, response) => {
    asked.push(request.url ?? '');
    listener(request, response);
  });
  server = made;
  return new Promise((resolve) =>
    made.listen(0, '127.0.0.1', () => resolve(`127.0.0.1:${(made.address() as AddressInfo).port}`)),
  );
}

function puller(policy: Partial<PullPolicy>, clock: Clock = systemClock): ImagePuller {
  const whole = { limits: PULLS, allowed: LOOPBACK, freeShare: async () => 1, ...policy };
  return new ImagePuller(new Engine(DOCKER_SOCKET, clock), clock, whole, silentLogger, startRelay);
}

const pull = (by: ImagePuller, image: string) =>
  by.pull({
    spec: specOf(image),
    onProgress: () => undefined,
    signal: new AbortController().signal,
  });

/** An image whose one layer comes in drops, and never ends. */
const dripping: RequestListener = ({ url = '' }, response) => {
  const config = JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    rootfs: { type: 'layers', diff_ids: ['sha256:1'] },
  });
  const layer = `sha256:${'1'.repeat(64)}`;
  const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`;
  if (url.includes('/manifests/')) {
    const described = { mediaType: 'application/vnd.docker.container.image.v1+json', size: config.length, digest };
    const mediaType = 'application/vnd.docker.image.rootfs.diff.tar.gzip';
    const layers = [{ mediaType, size: 500_000_000, digest: layer }];
    response.setHeader('content-type', MANIFEST);
    return void response.end(JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config: described, layers }));
  }
  if (url.endsWith(digest)) return void response.end(config);
  if (!url.endsWith(layer)) return void response.end('{}');
  response.setHeader('content-length', 500_000_000);
  const drop = Buffer.alloc(20_000);
  const timer = setInterval(() => {
    response.write(drop);
    drops++;
  }, 50);
  response.on('close', () => clearInterval(timer));
};

it('a registry that drips is given up: nobody pays for the GPUs that wait for it', async () => {
  const clock = new ManualClock();
  const address = await serve(dripping);
  const pulled = pull(puller({}, clock), `${address}/slow:1`).then(
    () => 'pulled',
    (error: unknown) => `${(error as Failure).code}: ${String(error)}`,
  );
  await eventually('the layer', () => asked.some((url) => url.endsWith('1'.repeat(64))), 30_000);
  let said: string | undefined;
  void pulled.then((words) => (said = words));
  let counted = drops;
  // A second for each drop: a minute in which nothing comes would end it, too.
  const dripped = async () => {
    await eventually('a drop', () => drops > counted || said !== undefined);
    counted += 1;
  };
  await advanceUntil('its end', { clock, stepMs: 1_000, parties: [dripped] }, () => said);
  expect(said).toMatch(/^IMAGE_TOO_SLOW: .*the registry sends less than/);
});

it('a registry where renters may not reach is not asked, whatever its image is called', async () => {
  const address = await serve((_, response) => void response.end('{}'));
  const name = address.replace('127.0.0.1', 'localhost');
  for (const image of [`${address}/app:1`, `${name}/app:1`])
    await expect(pull(puller({ allowed: [] }), image)).rejects.toThrow(/at an address that instances may not reach/);
  expect(asked).toEqual([]);
});

it('what a registry answers is not read by who has named it', async () => {
  const address = await serve((_, response) => {
    response.statusCode = 500;
    response.end(JSON.stringify({ errors: [{ code: 'UNKNOWN', message: 'the password of the neighbour' }] }));
  });
  const said = await pull(puller({}), `${address}/app:1`).then(
    () => '',
    (error: unknown) => String(error),
  );
  expect(said).toContain('cannot be pulled: the registry');
  expect(said).not.toContain('neighbour');
});

it('an image that unpacks to more than this host takes is removed again', async () => {
  const registry = await Registry.start();
  try {
    const image = await registry.take(SAMPLE_IMAGE, 'large');
    const limits = { ...PULLS, mostBytes: 100_000 };
    const order = { onProgress: () => undefined, signal: new AbortController().signal };
    const spec = specOf(image, { registry: Registry.USER });
    await expect(puller({ limits }).pull({ ...order, spec })).rejects.toThrow(/it takes 1 GB/);
    // It is the sample image under other names.
    const namesOf = async () => (await docker.getImage(SAMPLE_IMAGE).inspect()).RepoTags;
    expect((await namesOf()).filter((name) => name.includes('large') || name.startsWith('127.0.0.1'))).toEqual([]);
    const { name } = await puller({}).pull({ ...order, spec });
    expect(await namesOf()).toContain(name);
    await docker.getImage(name).remove();
  } finally {
    registry.stop();
  }
});

it('a disk that fills up while an image is unpacked ends the pull', async () => {
  const clock = new ManualClock();
  const address = await serve(dripping);
  const pulled = pull(puller({ freeShare: async () => 0.01 }, clock), `${address}/bomb:1`);
  const ended = expect(pulled).rejects.toThrow(/disk of this machine is full/);
  await eventually('the layer', () => asked.some((url) => url.endsWith('1'.repeat(64))), 30_000);
  clock.advance(6_000);
  await ended;
});
