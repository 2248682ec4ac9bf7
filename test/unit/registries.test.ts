import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markOf, PullRefused, pullFailure } from '../../agent/domain/pull-failure.js';
import { pullRoute, pullsThroughProxy, type DockerRegistries } from '../../agent/domain/registries.js';
import { parseChallenge } from '../../agent/pulls/challenge.js';
import { PullSlots } from '../../agent/runtime/docker/images/pull-slots.js';
import { isFetchedName, pulledName } from '../../agent/runtime/docker/images/pulled-images.js';
import { registryAuthorities } from '../../agent/runtime/docker/images/registry-authorities.js';
import { isWithin } from '../../shared/network/forbidden-networks.js';
import { parseImageReference } from '../../shared/image-reference.js';

const DIGEST = `sha256:${'a1'.repeat(32)}`;

describe('Where an image is pulled from', () => {
  const route = (image: string, info: DockerRegistries = {}) => {
    const parsed = parseImageReference(image);
    if (!parsed) throw new Error(`${image} is no reference`);
    const { registries, repository, reference } = pullRoute(parsed, info);
    return [
      ...registries.map(({ origin, isMirror }) => (isMirror ? `mirror ${origin}` : origin)),
      repository,
      reference,
    ];
  };

  it.each([
    ['debian', 'https://registry-1.docker.io', 'library/debian', 'latest'],
    ['docker.io/debian', 'https://registry-1.docker.io', 'library/debian', 'latest'],
    ['docker.io/team/app:2', 'https://registry-1.docker.io', 'team/app', '2'],
    ['index.docker.io/debian:2', 'https://registry-1.docker.io', 'library/debian', '2'],
    [`ghcr.io/team/app:1@${DIGEST}`, 'https://ghcr.io', 'team/app', DIGEST],
    ['[2001:db8::1]:5000/app', 'https://[2001:db8::1]:5000', 'app', 'latest'],
    ['Registry.Example/app:1', 'https://registry.example', 'app', '1'],
  ])('%s', (image, ...expected) => {
    expect(route(image)).toEqual(expected);
  });

  it('is without TLS only where Docker’s configuration says so, and at mirrors for Docker Hub alone', () => {
    const info = {
      RegistryConfig: {
        IndexConfigs: { 'docker.io': { Secure: true }, 'registry.lan:5000': { Secure: false } },
        Mirrors: ['http://10.0.0.5:5000/', 'https://mirror.example/'],
      },
    };
    expect(route('registry.lan:5000/app:1', info)[0]).toBe('http://registry.lan:5000');
    expect(route('registry.lan/app:1', info)[0]).toBe('https://registry.lan');
    expect(route('debian:1', info).slice(0, 3)).toEqual([
      'mirror http://10.0.0.5:5000/',
      'mirror https://mirror.example/',
      'https://registry-1.docker.io',
    ]);
  });

  it('is one of four mirrors at most, and without TLS in the networks that Docker names', () => {
    const mirrors = [1, 2, 3, 4, 5].map((number) => `https://mirror${number}.example`);
    const InsecureRegistryCIDRs = ['127.0.0.0/8', '10.9.0.0/16'];
    const image = { registry: null, repository: 'debian', tag: null, digest: null };
    const { registries, insecureNetworks } = pullRoute(image, {
      RegistryConfig: { Mirrors: mirrors, InsecureRegistryCIDRs },
    });
    expect(registries.map(({ origin }) => origin)).toEqual([...mirrors.slice(0, 4), 'https://registry-1.docker.io']);
    expect(insecureNetworks).toEqual(InsecureRegistryCIDRs);
    expect(pullRoute(image, { RegistryConfig: {} }).insecureNetworks).toEqual([]);
    expect(pullRoute(image, {}).insecureNetworks).toEqual([]);
  });

  it('is a proxy where Docker has one', () => {
    expect([{}, { HttpProxy: '' }, { HttpsProxy: 'http://proxy' }].map(pullsThroughProxy)).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe('The name of what was pulled', () => {
  it.each([
    ['debian', 'pulled/docker.io/library/debian:latest'],
    ['docker.io/library/debian:latest', 'pulled/docker.io/library/debian:latest'],
    ['ghcr.io/team/app:V1', 'pulled/ghcr.io/team/app:V1'],
    ['registry.example:5000/app:1', 'pulled/registry.example_5000/app:1'],
    ['[::1]/app:1', 'pulled/ipv6__x-x-1/app:1'],
    ['[2001:DB8::1]:5000/app:1', 'pulled/ipv6__2001-db8-x-1_5000/app:1'],
    [`ghcr.io/app:1@${DIGEST}`, `pulled-by-digest/ghcr.io/app:sha256-${'a1'.repeat(32)}`],
  ])('%s', (image, expected) => {
    expect(pulledName(image)).toBe(`localhost/gpurent/${expected}`);
  });

  it('is another for another image, and one that Docker takes and renters cannot ask for', () => {
    const long = `${'a/'.repeat(110)}b`;
    const images = [
      'a/b:1',
      'a.b/c:1',
      'a/b.c:1',
      'localhost/b:1',
      'localhost:1/b:1',
      'a-1/b:1',
      'a:5000/b:1',
      'a_5000/b:1',
    ];
    images.push('[a:5000]/b:1', '[a]:5000/b:1', 'x-a/b:1', `a/b:sha256-${'a1'.repeat(32)}`, `a/b@${DIGEST}`);
    images.push(
      `${long}:1`,
      `${long}:2`,
      `${long}@${DIGEST}`,
      `a/b@sha512:${'a1'.repeat(64)}`,
      'ipv6--x-x-1/b:1',
      '[::1]/b:1',
    );
    images.push('LONG/b:1', 'long/b:1', 'docker.io/docker.io/b:1');
    const names = images.map(pulledName);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) {
      expect(parseImageReference(name)).toMatchObject({ registry: 'localhost' });
      expect(isFetchedName(name)).toBe(true);
    }
  });

  it('is told from what this host’s owner has named', () => {
    const fetched = [
      '127.0.0.1:5000/gpurent/pulling:1',
      `127.0.0.1:5000/gpurent/pulling@${DIGEST}`,
      'localhost/gpurent/vm-disk:1',
    ];
    expect(fetched.map(isFetchedName)).toEqual([true, true, true]);
    const others = ['127.0.0.1:5000/app:1', 'localhost/gpurent/vm-runner:1', 'debian:1', 'localhost/gpurent/pulled:1'];
    others.push(
      'x/127.0.0.1:5000/gpurent/pulling:1',
      '127.0.0.1:5000/gpurent/pulling/x:1',
      '127.0.0.1:5000/gpurent/pullings:1',
    );
    expect(others.map(isFetchedName)).toEqual(others.map(() => false));
  });
});

it.each([
  [
    'Bearer realm="https://auth.example/token",service="registry.example"',
    'https://auth.example/token',
    'registry.example',
  ],
  ['bearer  realm = "https://a.example/t?a=b,c" , scope="x" ', 'https://a.example/t?a=b,c', ''],
  ['Basic realm="x", Bearer realm="https://a.example/",service="s"', 'https://a.example/', 's'],
  ['Bearer realm="https://a.example/",service="s", Basic realm="x"', 'https://a.example/', 's'],
])('a registry asks for a token: %s', (header, realm, service) => {
  expect(parseChallenge(header)).toEqual({ scheme: 'bearer', realm, service });
});

it.each([
  ['Basic realm="x"', { scheme: 'basic' }],
  ['Basic', { scheme: 'basic' }],
  ['Bearer service="s"', undefined],
  ['Negotiate', undefined],
  ['NotBasic realm="x"', undefined],
  ['', undefined],
])('a registry asks for no token: %s', (header, expected) => {
  expect(parseChallenge(header)).toEqual(expected);
});

it('a header that asks for something is parsed in a time that does not explode with its length', () => {
  for (const part of ['Bearer ', 'realm="', 'a=', ', Basic', ' '])
    expect(parseChallenge(part.repeat(10_000))?.scheme).not.toBe('bearer');
});

it('what the relay says of a refusal comes through Docker’s words about it', () => {
  const said = `pull access denied for x, repository does not exist: denied: ${markOf('forbidden_address')}`;
  expect(pullFailure(said)).toBe(new PullRefused('forbidden_address').message);
  expect(pullFailure('gpurent-pull-relay:constructor not found')).toContain('(not found)');
});

it('an address lies within networks of its own kind', () => {
  expect(isWithin('10.1.2.3', ['10.0.0.0/8'])).toBe(true);
  expect(isWithin('203.0.113.7', ['203.0.113.7'])).toBe(true);
  expect(isWithin('2001:db8::2', ['2001:db8::1'])).toBe(false);
  expect(isWithin('2001:db8::1', ['2001:db8::1', '10.0.0.0/8'])).toBe(true);
  expect(isWithin('no address', ['0.0.0.0/0'])).toBe(false);
});

it('so many pulls go on at once, and the next in the order in which they came', async () => {
  const slots = new PullSlots(1);
  const { signal } = new AbortController();
  const told: string[] = [];
  const first = await slots.take(signal);
  const given = new AbortController();
  const givenUp = slots.take(given.signal).catch(() => told.push('given up'));
  const second = slots.take(signal).then((release) => (told.push('second'), release));
  const third = slots.take(signal).then((release) => (told.push('third'), release));
  given.abort();
  await givenUp;
  expect(told).toEqual(['given up']);
  first();
  (await second)();
  (await third)();
  expect(told).toEqual(['given up', 'second', 'third']);
  (await slots.take(signal))();
});

it('certificates of a registry are those that Docker finds for it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-certs-'));
  const host = join(folder, 'registry.example:5000');
  mkdirSync(host);
  for (const name of ['b.crt', 'a.crt', 'client.cert', 'client.key']) writeFileSync(join(host, name), name);
  writeFileSync(join(folder, 'outside.crt'), 'outside');
  expect(await registryAuthorities('registry.example:5000', folder)).toEqual(['a.crt', 'b.crt']);
  for (const other of ['registry.example', '.', '..', 'x/..', ''])
    expect(await registryAuthorities(other, folder)).toEqual([]);
  rmSync(folder, { recursive: true });
});
