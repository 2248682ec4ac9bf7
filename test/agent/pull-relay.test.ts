import { afterEach, describe, expect, it } from 'vitest';
import type { RelayOrder } from '../../agent/pulls/order.js';
import { certificateFor } from '../harness/certificate.js';
import { AUTHORIZATION, DIGEST, blob, manifest, reason, redirect, relayTo, serve, stopAll } from './relays.js';

const USER = { username: 'owner', password: 'a registry password' };
const BASIC = `Basic ${Buffer.from(`${USER.username}:${USER.password}`).toString('base64')}`;

afterEach(stopAll);

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
    const part = await ask(`gpurent/pulling/blobs/${DIGEST}`, { headers: { range: 'bytes=2-5' } });
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
    const secret = Buffer.from(AUTHORIZATION.slice('Basic '.length), 'base64').toString().split(':')[1];
    for (const authorization of ['', 'Basic Z3B1cmVudDp3cm9uZw==', `Bearer ${secret}`]) {
      const refused = await ask('gpurent/pulling/manifests/1', { headers: { authorization } });
      expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="gpurent"']);
    }
    const strange = ['_catalog', 'other/app/manifests/1', 'team/app/manifests/1', 'gpurent/pulling/manifests/2'];
    strange.push('gpurent/pulling/tags/list', 'gpurent/pulling/blobs/1', 'gpurent/pulling/blobs/..%2f..%2fx');
    for (const path of strange) expect((await ask(path)).status).toBe(404);
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await ask('gpurent/pulling/manifests/1', { method })).status).toBe(404);
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

  it('asks again where the registry has closed a connection that was kept', async () => {
    const used = new Set<unknown>();
    const registry = await serve(({ socket }, response) => {
      if (used.has(socket)) return void socket.destroy();
      used.add(socket);
      response.end('{}');
    });
    const ask = await relayTo(registry.origin);
    expect(reason(await blob(ask))).toBe('served');
    expect(reason(await blob(ask))).toBe('served');
    expect([used.size, registry.asked.length]).toEqual([2, 3]);
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
