import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { DIGEST, LOOPBACK, blob, manifest, reason, redirect, relayTo, serve, stopAll } from './relays.js';

afterEach(stopAll);

describe('What a registry may send', () => {
  const words = 'the words of a stranger';

  it.each([
    [500, 'answered with an error'],
    [404, 'not found'],
    [403, 'unauthorized'],
    [429, 'limits how often'],
    [418, 'answered with an error'],
  ])('in an answer with the status %i is not passed on', async (status, expected) => {
    const registry = await serve((_, response) => void response.writeHead(status, words).end(words));
    const answer = await manifest(await relayTo(registry.origin));
    expect(reason(answer)).toContain(expected);
    expect(JSON.stringify([answer.body, ...answer.headers])).not.toContain(words);
  });

  it('as a manifest is 4 MiB at most', async () => {
    const registry = await serve(({ url }, response) => {
      response.end(Buffer.alloc(4 * 1024 * 1024 + (url?.endsWith('1') ? 1 : 0)));
    });
    const ask = await relayTo(registry.origin);
    expect(reason(await manifest(ask))).toContain('not a sound image');
    const { body } = await ask(`gpurent/pulling/manifests/sha256:${'0'.repeat(64)}`);
    expect(body).toHaveLength(4 * 1024 * 1024);
  });

  it('as a manifest is whole, for Docker keeps a beginning and asks for the rest', async () => {
    const [beginning, rest] = ['{"layers":[{"ur', 'ls":["http://169.254.169.254/"]}]}'];
    let sent = beginning;
    const registry = await serve(({ headers }, response) => {
      if (headers.range) return void response.writeHead(206, { 'content-range': 'bytes 15-48/49' }).end(rest);
      response.end(sent);
    });
    const ask = await relayTo(registry.origin);
    expect(reason(await manifest(ask))).toContain('not a sound image');
    expect(reason(await blob(ask))).toContain('not a sound image');
    sent = ' \n';
    expect(reason(await blob(ask))).toContain('not a sound image');
    sent = '{}';
    const path = 'gpurent/pulling/manifests/1';
    expect(await ask(path, { headers: { range: 'bytes=15-' } })).toMatchObject({ status: 200, body: '{}' });
  });

  it('as the rest of a layer may begin as a manifest does', async () => {
    const registry = await serve((_, response) => void response.writeHead(206).end('{ of a layer'));
    const ask = await relayTo(registry.origin);
    const after = (from: number) => ask(`gpurent/pulling/blobs/${DIGEST}`, { headers: { range: `bytes=${from}-` } });
    expect((await after(7)).body).toBe('{ of a layer');
    expect(reason(await after(0))).toContain('not a sound image');
  });

  it.each(['{"urls":[]}', '{"data":"eyJ1cmxzIjpbXX0="}', '{', ' '])(
    'as a manifest holds no other one that is not sound: %j',
    async (inner) => {
      const data = Buffer.from(inner).toString('base64');
      const registry = await serve((_, response) => void response.end(`{"manifests":[{"d\\u0061ta":"${data}"}]}`));
      const ask = await relayTo(registry.origin);
      expect(reason(await manifest(ask))).not.toBe('served');
      expect(reason(await blob(ask))).not.toBe('served');
    },
  );

  it('as a manifest may hold a sound one and other data, as text alone', async () => {
    let content = '{"config":{"data":"e30="},"labels":{"data":"of its owner","a":["data","urls"]}}';
    const registry = await serve((_, response) => void response.end(content));
    const ask = await relayTo(registry.origin);
    expect((await manifest(ask)).body).toBe(content);
    content = '{"data":[123,125]}';
    expect(reason(await manifest(ask))).toContain('not a sound image');
  });

  it.each(['"urls"', '"URLS"', '"\\u0075rls"', '"url\u017f"', '"urls" \n'])(
    'as a manifest names no other places of layers, of which Docker would ask by itself: %s',
    async (key) => {
      const twice = `{"layers":[{${key}:["http://169.254.169.254/"]}],"layers":[{}]}`;
      const registry = await serve((_, response) => {
        response.write(' \n');
        response.end(twice);
      });
      const ask = await relayTo(registry.origin);
      expect(reason(await manifest(ask))).toContain('on other servers than its registry');
      expect(reason(await blob(ask))).toContain('on other servers than its registry');
    },
  );

  it('as a manifest may hold the word elsewhere, and a layer whatever it likes', async () => {
    const sound = '{"annotations":{"a\\"urls":"\\"urls\\":","b":"urls"}}';
    const layer = 'urls{"urls":[]}';
    let content = sound;
    const registry = await serve((_, response) => void response.end(content));
    const ask = await relayTo(registry.origin);
    expect((await manifest(ask)).body).toBe(sound);
    expect((await blob(ask)).body).toBe(sound);
    content = layer;
    expect((await blob(ask)).body).toBe(layer);
  });

  it('as a blob that may be a manifest is 8 MiB at most', async () => {
    const registry = await serve((_, response) => void response.end(`{${' '.repeat(8 * 1024 * 1024)}}`));
    const ask = await relayTo(registry.origin, { mostBytes: 1e9 });
    expect(reason(await blob(ask))).toContain('not a sound image');
  });

  it('as a token is 64 KiB at most', async () => {
    const registry = await serve(({ url = '' }, response) => {
      if (url.startsWith('/token')) return void response.end(JSON.stringify({ pad: ' '.repeat(65_536), token: 'x' }));
      response.writeHead(401, { 'www-authenticate': `Bearer realm="${registry.origin}/token"` }).end();
    });
    expect(reason(await manifest(await relayTo(registry.origin)))).toContain('not a sound image');
  });

  it.each([
    ['without control characters', 'a\nb'],
    ['32 KiB at most', 'x'.repeat(32_769)],
    ['text', 7],
  ])('as a token is %s', async (_, token) => {
    const registry = await serve(({ url = '' }, response) => {
      if (url.startsWith('/token')) return void response.end(JSON.stringify({ token }));
      response.writeHead(401, { 'www-authenticate': `Bearer realm="${registry.origin}/token"` }).end();
    });
    expect(reason(await manifest(await relayTo(registry.origin)))).toContain('(unauthorized)');
  });

  it('in an answer that nobody wants is not read for long', async () => {
    let isCutOff = false;
    const store = await serve((_, response) => {
      void eventually('the end of the answer before', () => isCutOff).then(() => response.end('a blob'));
    });
    const registry = await serve((_, response) => {
      response.writeHead(307, { location: store.origin }).write('x');
      response.once('close', () => (isCutOff = true));
    });
    expect((await blob(await relayTo(registry.origin))).body).toBe('a blob');
  });

  it.each([
    ['more than 16 KiB', 'not a sound image', 20_000, 0],
    ['without an end', 'cannot be reached', 10, 20],
  ])('as headers is bounded: %s', async (_, expected, bytes, everyMs) => {
    let timer: NodeJS.Timeout | undefined;
    const registry = await serve((_request, { socket }) => {
      socket?.write(`HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(bytes)}`);
      if (everyMs > 0) timer = setInterval(() => socket?.write('x'), everyMs);
    });
    const ask = await relayTo(registry.origin, {}, { patience: { silenceMs: everyMs > 0 ? 300 : 30_000 } });
    expect(reason(await manifest(ask))).toContain(expected);
    clearInterval(timer);
  });

  it('may stop coming for a time, and then is given up', async () => {
    const registry = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('half');
    });
    const ask = await relayTo(registry.origin, {}, { patience: { silenceMs: 3_000 } });
    expect(reason(await manifest(ask))).toContain('cannot be reached');
    expect((await blob(ask)).body).toBe('cut off');
  });

  it('has to come soon: its address, and its handshake', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const origin = `https://registry.test:${(silent.address() as AddressInfo).port}`;
    const ask = (resolve: () => Promise<string[]>) =>
      relayTo(origin, { insecureNetworks: [] }, { resolve, patience: { resolveMs: 50, handshakeMs: 50 } });
    const unresolved = await ask(() => new Promise(() => undefined));
    expect(reason(await manifest(unresolved))).toContain('cannot be resolved');
    const unshaken = await ask(async () => ['127.0.0.1']);
    expect(reason(await manifest(unshaken))).toContain('cannot be reached');
    silent.close();
  });

  it('as addresses of a name is tried four times', async () => {
    const registry = await serve((_, response) => void response.end('{}'), '127.0.0.5');
    const order = { allowed: LOOPBACK };
    const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
    const ask = async (resolved: string[]) =>
      relayTo(`http://registry.test:${registry.port}`, order, { resolve: async () => resolved });
    expect(reason(await manifest(await ask(addresses)))).toContain('cannot be reached');
    expect(reason(await manifest(await ask(addresses.slice(1))))).toBe('served');
  });

  it.each([[true], [false]])('in all is what the host takes; declared: %s', async (isDeclared) => {
    const registry = await serve((_, response) => {
      if (isDeclared) response.setHeader('content-length', 600_000);
      response.write(Buffer.alloc(300_000));
      response.end(Buffer.alloc(300_000));
    });
    const ask = await relayTo(registry.origin);
    expect((await blob(ask)).body).toHaveLength(600_000);
    const second = await blob(ask);
    expect(isDeclared ? reason(second) : second.body).toContain(
      isDeclared ? 'larger than this machine takes' : 'cut off',
    );
    expect(reason(await blob(ask))).toContain('larger than this machine takes');
  });

  it('are five redirects in a row', async () => {
    const registry = await serve((request, response) => {
      const left = Number(/left=(\d+)/.exec(request.url ?? '')?.[1] ?? (request.url?.endsWith('/1') ? 6 : 5));
      if (left === 0) return void response.end('{}');
      redirect(`/again?left=${left - 1}`)(request, response);
    });
    const ask = await relayTo(registry.origin);
    expect(reason(await manifest(ask))).toContain('not a sound image');
    expect(reason(await blob(ask))).toBe('served');
  });

  it('is asked for 32 times at once at most', async () => {
    const letGo: (() => void)[] = [];
    const registry = await serve((_, response) => void letGo.push(() => response.end('{}')));
    const ask = await relayTo(registry.origin);
    const asked = Array.from({ length: 33 }, () => blob(ask));
    expect(reason(await Promise.race(asked))).toContain('more requests than this machine makes');
    await eventually('the others', () => {
      for (const answer of letGo.splice(0)) answer();
      return registry.asked.length === 32;
    });
    for (const answer of letGo.splice(0)) answer();
    expect((await Promise.all(asked)).map(reason).filter((each) => each === 'served')).toHaveLength(32);
  });

  it('takes so many requests of one pull at most', async () => {
    const registry = await serve((_, response) => void response.end('{}'));
    const ask = await relayTo(registry.origin, {}, { mostRequests: 20 });
    for (let asked = 0; asked < 20; asked++) await blob(ask);
    expect(reason(await blob(ask))).toContain('more requests than this machine makes');
    expect(registry.asked).toHaveLength(20);
  });

  it.each(['gopher://x', 'http://[', 'file:///etc/passwd', 'https:\\\\', ''])('is no address: %j', async (location) => {
    const registry = await serve(redirect(location));
    expect(reason(await blob(await relayTo(registry.origin)))).not.toBe('served');
  });
});
