import type { RequestListener } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { pullFailure } from '../../agent/domain/pull-failure.js';
import { RELAY_USER, type RelayOrder } from '../../agent/pulls/order.js';
import { Relay, type RelayParts } from '../../agent/pulls/relay.js';
import { certificateFor } from '../harness/certificate.js';
import { serveHttp, type FakeServer } from '../harness/fake-registry.js';

const SECRET = 'a secret of this pull';
const DIGEST = `sha256:${'a1'.repeat(32)}`;
const USER = { username: 'owner', password: 'a registry password' };
const BASIC = `Basic ${Buffer.from(`${USER.username}:${USER.password}`).toString('base64')}`;
/** What a registry may be at in these tests; 127.0.0.2 stands for the host's networks. */
const ALLOWED = ['127.0.0.1/32'];
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.stop();
});

async function serve(...given: Parameters<typeof serveHttp>): Promise<FakeServer> {
  const server = await serveHttp(...given);
  open.push(server);
  return server;
}

interface Answer {
  status: number;
  body: string;
  headers: Headers;
}
type Ask = (path: string, init?: RequestInit) => Promise<Answer>;

/** A relay for `team/app:1`. Answers how to ask it in Docker's place. */
async function relayTo(origin: string, order: Partial<RelayOrder> = {}, parts: RelayParts = {}): Promise<Ask> {
  const whole: RelayOrder = {
    registries: [{ origin, isMirror: false, authorities: [] }],
    repository: 'team/app',
    reference: '1',
    insecureNetworks: LOOPBACK,
    credentials: null,
    allowed: ALLOWED,
    mostBytes: 1_000_000,
    secret: SECRET,
    ...order,
  };
  const relay = new Relay(whole, { ownAddresses: [], ...parts });
  const port = await relay.listen();
  open.push({ stop: () => relay.close() });
  const authorization = `Basic ${Buffer.from(`${RELAY_USER}:${SECRET}`).toString('base64')}`;
  return async (path, init = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}/v2/${path}`, { headers: { authorization }, ...init });
    const body = await response.text().catch(() => 'cut off');
    return { status: response.status, body, headers: response.headers };
  };
}

const manifest = (ask: Ask) => ask('gpurent/pulling/manifests/1');
const blob = (ask: Ask) => ask(`gpurent/pulling/blobs/${DIGEST}`);
/** What Docker would say of an answer, in the words that a renter reads. */
const reason = ({ status, body }: Answer) => (status < 400 ? 'served' : pullFailure(body));
const redirect =
  (location: string, status = 307): RequestListener =>
  (_, response) =>
    response.writeHead(status, { location, 'content-length': 0 }).end();

describe('The pull relay', () => {
  it('serves what the registry has: manifests, blobs, and parts of them', async () => {
    const registry = await serve(({ headers, url }, response) => {
      const content = url?.includes('/manifests/') ? 'a manifest' : 'a blob';
      response.setHeader('docker-content-digest', DIGEST).setHeader('x-strange', 'of the registry');
      if (headers.range) return void response.writeHead(206, { 'content-range': 'bytes 2-5/6' }).end('blob');
      response.setHeader('content-type', String(headers.accept)).end(content);
    });
    const ask = await relayTo(registry.origin);
    expect(await ask('')).toMatchObject({ status: 200, body: '{}' });
    expect(await manifest(ask)).toMatchObject({ status: 200, body: 'a manifest' });
    expect((await ask(`gpurent/pulling/manifests/${DIGEST}`)).headers.get('docker-content-digest')).toBe(DIGEST);
    const { body, headers } = await blob(ask);
    expect([body, headers.get('x-strange'), headers.get('content-type')]).toEqual(['a blob', null, '*/*']);
    const authorization = `Basic ${Buffer.from(`${RELAY_USER}:${SECRET}`).toString('base64')}`;
    const part = await ask(`gpurent/pulling/blobs/${DIGEST}`, { headers: { authorization, range: 'bytes=2-5' } });
    expect(part).toMatchObject({ status: 206, body: 'blob' });
    expect(registry.asked.map(({ url }) => url)).toEqual([
      '/v2/team/app/manifests/1',
      `/v2/team/app/manifests/${DIGEST}`,
      `/v2/team/app/blobs/${DIGEST}`,
      `/v2/team/app/blobs/${DIGEST}`,
    ]);
  });

  it('serves whoever knows its secret, one repository, and to read only', async () => {
    const registry = await serve((_, response) => void response.end('{}'));
    const ask = await relayTo(registry.origin);
    for (const authorization of ['', 'Basic Z3B1cmVudDp3cm9uZw==', `Bearer ${SECRET}`]) {
      const refused = await ask('gpurent/pulling/manifests/1', { headers: { authorization } });
      expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="gpurent"']);
    }
    const strange = ['_catalog', 'other/app/manifests/1', 'team/app/manifests/1', 'gpurent/pulling/manifests/2'];
    strange.push('gpurent/pulling/tags/list', 'gpurent/pulling/blobs/1', 'gpurent/pulling/blobs/..%2f..%2fx');
    for (const path of strange) expect((await ask(path)).status).toBe(404);
    const authorization = `Basic ${Buffer.from(`${RELAY_USER}:${SECRET}`).toString('base64')}`;
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await ask('gpurent/pulling/manifests/1', { method, headers: { authorization } })).status).toBe(404);
    expect(registry.asked).toEqual([]);
  });

  it.each(['http://127.0.0.2:PORT/x', '//127.0.0.2:PORT/', 'http://2130706434:PORT/', 'http://[::ffff:7f00:2]:PORT/'])(
    'follows no redirect to a forbidden address: %s',
    async (location) => {
      const target = await serve((_, response) => void response.end('a secret of the host'), '127.0.0.2');
      const registry = await serve(redirect(location.replace('PORT', String(target.port))));
      const ask = await relayTo(registry.origin);
      expect(reason(await blob(ask))).toContain('at an address that instances may not reach');
      expect(reason(await manifest(ask))).toContain('at an address that instances may not reach');
      expect(target.asked).toEqual([]);
    },
  );

  it('asks no token server at a forbidden address', async () => {
    const target = await serve((_, response) => void response.end('{"token":"x"}'), '127.0.0.2');
    const registry = await serve((_, response) => {
      response.setHeader('www-authenticate', `Bearer realm="https://127.0.0.2:${target.port}/token",service="x"`);
      response.writeHead(401).end();
    });
    const ask = await relayTo(registry.origin, { credentials: USER });
    expect(reason(await manifest(ask))).toContain('at an address that instances may not reach');
    expect(target.asked).toEqual([]);
  });

  it('goes to the address that it has checked, whatever the name says the next time', async () => {
    const target = await serve((_, response) => void response.end('a secret of the host'), '127.0.0.2');
    const registry = await serve((_, response) => void response.setHeader('connection', 'close').end('{}'));
    const answers = ['127.0.0.1', '127.0.0.1', '127.0.0.2'];
    const resolve = async () => [answers.shift() ?? '127.0.0.2'];
    const ask = await relayTo(`http://rebound.test:${registry.port}`, {}, { resolve });
    expect(reason(await manifest(ask))).toBe('served');
    expect(reason(await blob(ask))).toBe('served');
    expect(reason(await blob(ask))).toContain('at an address that instances may not reach');
    expect([registry.asked.length, target.asked.length]).toEqual([2, 0]);
  });

  it('takes, of many addresses of a name, one that may be reached', async () => {
    const registry = await serve((_, response) => void response.end('{}'));
    const resolve = async () => ['fe80::1%eth0', '10.1.2.3', '127.0.0.1'];
    const ask = await relayTo(`http://registry.test:${registry.port}`, {}, { resolve });
    expect(reason(await manifest(ask))).toBe('served');
  });

  it('does not reach this machine by its public addresses', async () => {
    const parts = { ownAddresses: ['203.0.113.7', 'fe80::1%eth0'], resolve: async () => ['203.0.113.7'] };
    const ask = await relayTo('https://myself.test', {}, parts);
    expect(reason(await manifest(ask))).toContain('at an address that instances may not reach');
  });

  it('reaches every address where the host’s owner keeps renters away by other means', async () => {
    const registry = await serve((_, response) => void response.end('{}'), '127.0.0.2');
    expect(reason(await manifest(await relayTo(registry.origin, { allowed: null })))).toBe('served');
  });

  it('speaks without TLS only where Docker’s configuration says so', async () => {
    const target = await serve((_, response) => void response.end('{}'));
    const certificate = await certificateFor('registry.test');
    const registry = await serve(redirect(target.origin), '127.0.0.1', certificate);
    const order = {
      registries: [
        { origin: `https://registry.test:${registry.port}`, isMirror: false, authorities: [certificate.certificate] },
      ],
      insecureNetworks: [],
    };
    const ask = await relayTo('', order, { resolve: async () => ['127.0.0.1'] });
    expect(reason(await blob(ask))).toContain('without TLS');
    expect([registry.asked.length, target.asked.length]).toEqual([1, 0]);
  });

  it('trusts, beside this machine’s authorities, those that are Docker’s for a registry', async () => {
    const certificate = await certificateFor('registry.test');
    const registry = await serve((_, response) => void response.end('{}'), '127.0.0.1', certificate);
    const origin = `https://registry.test:${registry.port}`;
    const parts = { resolve: async () => ['127.0.0.1'] };
    expect(reason(await manifest(await relayTo(origin, { insecureNetworks: [] }, parts)))).toContain('certificate');
    const registries = [{ origin, isMirror: false, authorities: [certificate.certificate] }];
    const ask = await relayTo(origin, { registries, insecureNetworks: [] }, parts);
    expect(reason(await manifest(ask))).toBe('served');
    // The name in it counts, too.
    const other = [{ ...registries[0], origin: `https://other.test:${registry.port}` }] as RelayOrder['registries'];
    const wrong = await relayTo(origin, { registries: other, insecureNetworks: [] }, parts);
    expect(reason(await manifest(wrong))).toContain('certificate');
  });
});

describe('A registry’s password', () => {
  it('goes to the registry that asks for it, and along no redirect', async () => {
    const store = await serve((_, response) => void response.end('a blob'));
    const registry = await serve(({ headers, url }, response) => {
      if (headers.authorization !== BASIC)
        return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      if (url?.includes('/blobs/')) return redirect(store.origin)({} as never, response);
      response.end('{}');
    });
    const ask = await relayTo(registry.origin, { credentials: USER });
    expect(reason(await manifest(ask))).toBe('served');
    expect((await blob(ask)).body).toBe('a blob');
    expect(store.asked.map(({ authorization }) => authorization)).toEqual([undefined]);
    expect(reason(await manifest(await relayTo(registry.origin)))).toContain('(unauthorized)');
    const wrong = await relayTo(registry.origin, { credentials: { ...USER, password: 'wrong' } });
    expect(reason(await manifest(wrong))).toContain('(unauthorized)');
  });

  it('goes to the token server that the registry names, and the token to the registry only', async () => {
    const store = await serve((_, response) => void response.end('a blob'));
    let [given, issued] = [0, 2];
    const registry = await serve(({ headers, url = '' }, response) => {
      if (url.startsWith('/token')) return void response.end(JSON.stringify({ token: `token-${++given}` }));
      if (headers.authorization !== `Bearer token-${issued}`) {
        const bearer = `Bearer realm="${registry.origin}/token?x=1",service="the registry",scope="repository:*:push"`;
        return void response.writeHead(401, { 'www-authenticate': bearer }).end();
      }
      if (url.includes('/blobs/')) return redirect(store.origin)({} as never, response);
      response.end('{}');
    });
    const ask = await relayTo(registry.origin, { credentials: USER });
    // The first token is not taken: that is the registry's word.
    expect(reason(await manifest(ask))).toContain('(unauthorized)');
    expect(reason(await manifest(ask))).toBe('served');
    // Tokens end.
    issued = 3;
    expect((await blob(ask)).body).toBe('a blob');
    const tokens = registry.asked.filter(({ url }) => url.startsWith('/token'));
    const query = 'x=1&service=the+registry&scope=repository%3Ateam%2Fapp%3Apull&account=owner';
    expect(tokens).toEqual(Array(3).fill({ method: 'GET', url: `/token?${query}`, authorization: BASIC }));
    expect(store.asked.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  it('goes to no token server without TLS, nor along its redirects', async () => {
    const tokens = await serve((_, response) => void response.end('{"token":"x"}'));
    const elsewhere = await serve((_, response) => void response.end('{"token":"x"}'));
    let realm = `${tokens.origin}/token`;
    const registry = await serve(({ url = '' }, response) => {
      if (url.startsWith('/token')) return redirect(elsewhere.origin)({} as never, response);
      response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}"` }).end();
    });
    const ask = await relayTo(registry.origin, { credentials: USER });
    expect(reason(await manifest(ask))).toContain('without TLS');
    expect(tokens.asked).toEqual([]);
    realm = `${registry.origin}/token`;
    await manifest(ask);
    expect(elsewhere.asked.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  it('goes to no mirror', async () => {
    const mirror = await serve(
      (_, response) => void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end(),
    );
    const registry = await serve((_, response) => void response.end('{}'));
    const registries = [mirror, registry].map(({ origin }) => ({
      origin,
      isMirror: origin === mirror.origin,
      authorities: [],
    }));
    const ask = await relayTo('', { registries, credentials: USER });
    expect(reason(await manifest(ask))).toBe('served');
    expect(mirror.asked.map(({ authorization }) => authorization)).toEqual([undefined]);
  });
});

it('A mirror is asked first, wherever its owner has put it; what it lacks comes from the registry', async () => {
  const mirror = await serve((request, response) => {
    if (request.url?.includes('/blobs/')) response.statusCode = 404;
    response.end('of the mirror');
  }, '127.0.0.2');
  const registry = await serve((_, response) => void response.end('of the registry'));
  const registries = [mirror, registry].map(({ origin }) => ({
    origin,
    isMirror: origin === mirror.origin,
    authorities: [],
  }));
  const ask = await relayTo('', { registries });
  expect((await manifest(ask)).body).toBe('of the mirror');
  expect((await blob(ask)).body).toBe('of the registry');
});

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

  it.each(['"urls"', '"URLS"', '"\\u0075rls"', '"url\u017f"', '"urls" \n'])(
    'as a manifest names no other places of layers, of which Docker would ask by itself: %s',
    async (key) => {
      const twice = `{"layers":[{${key}:["http://169.254.169.254/"]}],"layers":[{}]}`;
      const registry = await serve((_, response) => {
        response.write(' \n');
        response.end(twice);
      });
      const ask = await relayTo(registry.origin);
      expect(reason(await manifest(ask))).toContain('fetched from elsewhere');
      expect(reason(await blob(ask))).toContain('fetched from elsewhere');
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
    ['more than 16 KiB', 'not a sound image', 20_000, 0],
    ['without an end', 'cannot be reached', 10, 20],
  ])('as headers is bounded: %s', async (_, expected, bytes, everyMs) => {
    let timer: NodeJS.Timeout | undefined;
    const registry = await serve((_request, { socket }) => {
      socket?.write(`HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(bytes)}`);
      if (everyMs > 0) timer = setInterval(() => socket?.write('x'), everyMs);
    });
    const ask = await relayTo(registry.origin, {}, { silenceMs: 300 });
    expect(reason(await manifest(ask))).toContain(expected);
    clearInterval(timer);
  });

  it('may stop coming for a time, and then is given up', async () => {
    const registry = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('half');
    });
    const ask = await relayTo(registry.origin, {}, { silenceMs: 300 });
    expect(reason(await manifest(ask))).toContain('cannot be reached');
    expect((await blob(ask)).body).toBe('cut off');
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
