import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { inspectImage, isMadeHere, readImage } from '../../agent/runtime/docker/images.js';
import { systemClock } from '../../shared/clock.js';

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
async function engineThat(handle: RequestListener): Promise<{ engine: Engine; asked: string[] }> {
  const path = join(folder, 'docker.sock');
  const asked: string[] = [];
  await listen({ path }, (request, response) => {
    asked.push(request.url ?? '');
    handle(request, response);
  });
  return { engine: new Engine(path, systemClock), asked };
}

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
