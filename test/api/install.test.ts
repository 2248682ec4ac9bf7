import { spawn, execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Downloads, MOST_DOWNLOADS } from '../../control-plane/host-release/downloads.js';
import { HOUR_MS } from '../../shared/time.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';

const GRPC = 'gpus.example:8090';
const folder = mkdtempSync(join(tmpdir(), 'gpurent-install-'));
const path = (name: string) => join(folder, name);
const RELEASE = path('gpurent-0.3.0-linux-x64.tar.gz');
const LARGE = path('large.tar.gz');
const sumOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');

let test: TestControlPlane;
beforeAll(async () => {
  makeRelease();
  writeFileSync(LARGE, randomBytes(32 * 1024 * 1024));
  test = await TestControlPlane.start();
  await serve(RELEASE);
});
afterAll(async () => {
  await test.stop();
  rmSync(folder, { recursive: true });
});

/** A release whose installer writes down how it was called, and the token that it was given. */
function makeRelease(): void {
  const scripts = path('tree/gpurent-0.3.0-linux-x64/scripts');
  mkdirSync(scripts, { recursive: true });
  const installer = `#!/bin/sh
    echo "$@" >'${path('called')}'
    cat "$4" >'${path('token')}'
    cat "\${0%/*}/../../SHA256SUMS" >'${path('sums')}' 2>/dev/null
    tr '\\0' '\\n' </proc/$PPID/cmdline >'${path('parent')}'
  `;
  writeFileSync(join(scripts, 'install-agent'), installer, { mode: 0o755 });
  execFileSync('tar', ['-czf', RELEASE, '-C', path('tree'), 'gpurent-0.3.0-linux-x64']);
}

const serve = (hostRelease: string) => test.restart({ hostRelease, publicUrl: test.url, publicGrpcAddress: GRPC });
const tokenOf = async (fields: object = {}) =>
  test.operator.post<{ id: string; token: string; install: object | null }>('/v1/operator/enrollment-tokens', {
    max_uses: 1,
    ...fields,
  });

function ask(route: string, headers: Record<string, string> = {}, method = 'GET'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${test.url}${route}`, { headers, method, agent: false }, resolve).on('error', reject);
  });
}
const release = (token: string, headers: Record<string, string> = {}, method = 'GET') =>
  ask('/install/release', { authorization: `Bearer ${token}`, ...headers }, method);

describe('the script', () => {
  it('has the addresses of the settings, whatever a request says', async () => {
    const answer = await ask('/install', { host: 'evil.example', 'x-forwarded-host': 'evil.example' });
    const script = await text(answer);
    expect(answer.statusCode).toBe(200);
    expect(script).toContain(`url='${test.url}'\ncontrol_plane='${GRPC}'`);
    expect(script).toContain(`sha256='${sumOf(RELEASE)}'`);
    expect(script).not.toContain('evil');
  });

  it('and the release go by https or to this machine only', async () => {
    const { token } = await tokenOf();
    const far = { 'x-forwarded-for': '203.0.113.9' };
    for (const route of ['/install', '/install/release']) {
      const authorization = `Bearer ${token}`;
      expect((await ask(route, { ...far, authorization })).statusCode).toBe(422);
      expect((await ask(route, { ...far, 'x-forwarded-proto': 'https', authorization })).statusCode).toBe(200);
    }
  });

  it('is not there without a release', async () => {
    await test.restart({});
    await serve(path('missing.tar.gz'));
    expect((await ask('/install')).statusCode).toBe(503);
    await serve(RELEASE);
  });
});

it('is told with a new token, for the line to paste', async () => {
  const { install } = await tokenOf();
  expect(install).toEqual({ url: `${test.url}/install`, sha256: sumOf(RELEASE) });
});

describe('the release', () => {
  it('goes to whoever has a usable token, which stays unused', async () => {
    const { id, token } = await tokenOf();
    for (const _ of [1, 2]) expect(await buffer(await release(token))).toEqual(readFileSync(RELEASE));
    const { items } = await test.operator.get<{ items: { id: string; uses: number }[] }>(
      '/v1/operator/enrollment-tokens',
    );
    expect(items.find((one) => one.id === id)?.uses).toBe(0);
  });

  it('comes with what is beside it, and with nothing else of its folder', async () => {
    const { token } = await tokenOf();
    const authorization = `Bearer ${token}`;
    writeFileSync(path('SHA256SUMS.minisig'), 'signed');
    expect(await text(await ask('/install/SHA256SUMS.minisig', { authorization }))).toBe('signed');
    expect((await ask('/install/SHA256SUMS.minisig')).statusCode).toBe(401);
    for (const route of ['/install/large.tar.gz', '/install/..%2flarge.tar.gz', '/install/release/large.tar.gz'])
      expect((await ask(route, { authorization })).statusCode, route).toBe(404);
  });

  it('goes to nobody else', async () => {
    const [revoked, late] = [await tokenOf(), await tokenOf({ expires_in_hours: 1 })];
    await test.operator.delete(`/v1/operator/enrollment-tokens/${revoked.id}`);
    test.clock.advance(HOUR_MS);
    for (const token of [revoked.token, late.token, 'enr_0', ''])
      expect((await release(token)).statusCode, token).toBe(401);
    expect((await ask('/install/release')).statusCode).toBe(401);
  });

  it('is resumed by a range', async () => {
    const { token } = await tokenOf();
    const whole = readFileSync(RELEASE);
    const rest = await release(token, { range: 'bytes=10-' });
    expect(rest.statusCode).toBe(206);
    expect(await buffer(rest)).toEqual(whole.subarray(10));
    expect((await release(token, { range: `bytes=${whole.length}-` })).statusCode).toBe(416);
    const head = await release(token, {}, 'HEAD');
    expect([head.statusCode, head.headers['content-length']]).toEqual([200, String(whole.length)]);
  });

  it('goes to so many at once, and a place is free again when one leaves', async () => {
    await serve(LARGE);
    const { token } = await tokenOf();
    const { token: other } = await tokenOf();
    const held = await Promise.all([token, token, other, other].map((each) => release(each)));
    expect(held.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: MOST_DOWNLOADS }, () => 200));
    const refused = await release((await tokenOf()).token);
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBeDefined();
    held[0]?.destroy();
    await eventually('a free place', async () => {
      const again = await release(token, { range: 'bytes=0-9' });
      return again.statusCode === 206;
    });
    for (const each of held) each.destroy();
    await serve(RELEASE);
  });

  it('leaves room for others beside the hosts of one token', async () => {
    await serve(LARGE);
    const { token } = await tokenOf();
    const held = await Promise.all([release(token), release(token)]);
    expect((await release(token)).statusCode).toBe(503);
    const other = await release((await tokenOf()).token);
    expect(other.statusCode).toBe(200);
    for (const each of [...held, other]) each.destroy();
    await serve(RELEASE);
  });

  it('is cut for somebody who never reads to its end', async () => {
    const downloads = new Downloads(1);
    const endless = () => Promise.resolve({ stream: new Readable({ read: () => undefined }) });
    const opened = await Promise.all(['a', 'a', 'b', 'c'].map((who) => downloads.open(who, endless)));
    await expect(downloads.open('d', endless)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await eventually('their ends', () => Promise.resolve(opened.every(({ stream }) => stream.closed)));
    (await downloads.open('a', endless)).stream.destroy();
    await expect(downloads.open('a', () => Promise.reject(new Error('no file')))).rejects.toThrow('no file');
  });
});

describe('run by sh, the script', () => {
  const SYSTEMD = path('systemd');
  beforeAll(() => {
    mkdirSync(path('bin'));
    mkdirSync(SYSTEMD);
    const uname = 'case "$1" in -m) echo x86_64 ;; -r) echo 5.10.0-34-cloud-amd64 ;; *) echo Linux ;; esac';
    for (const [name, says] of Object.entries({ id: 'echo 0', uname })) {
      writeFileSync(path(`bin/${name}`), `#!/bin/sh\n${says}\n`);
      chmodSync(path(`bin/${name}`), 0o755);
    }
  });

  const fetched = async () =>
    (await text(await ask('/install')))
      .replace('/run/systemd/system', SYSTEMD)
      .replace('place=/opt/gpurent', `place=${path('opt')}`);
  async function run(script: string, args: string[] = [], env: Record<string, string> = {}) {
    for (const name of ['called', 'token', 'parent']) rmSync(path(name), { force: true });
    const shell = spawn('sh', ['-s', '--', ...args], {
      env: { PATH: `${path('bin')}:${process.env['PATH'] ?? ''}`, ...env },
      detached: true,
    });
    shell.stdin.on('error', () => undefined).end(script);
    const [code, said] = await Promise.all([
      new Promise<number | null>((end) => shell.on('exit', end)),
      text(shell.stderr),
    ]);
    expect(existsSync(path('opt'))).toBe(false);
    return { code, said, called: readIf('called'), token: readIf('token') };
  }
  const readIf = (name: string) => {
    try {
      return readFileSync(path(name), 'utf8').trim();
    } catch {
      return undefined;
    }
  };

  it('installs what it was told, with the token in no list of processes', async () => {
    const { token } = await tokenOf();
    writeFileSync(path('given'), `${token}\n`);
    const ended = await run(await fetched(), ['--token-file', path('given'), '--', '--gpus', 'simulated:2']);
    expect(ended).toMatchObject({ code: 0, token });
    expect(ended.called).toMatch(new RegExp(`^--control-plane ${GRPC} --token-file \\S+ --gpus simulated:2$`));
    expect(readIf('parent')).not.toContain(token);
    expect(readIf('sums')).toBe('');
    writeFileSync(path('SHA256SUMS'), 'sums');
    expect(await run(await fetched(), [], { GPURENT_ENROLLMENT_TOKEN: token })).toMatchObject({ code: 0, token });
    expect(readIf('sums')).toBe('sums');
  });

  it('does nothing where it was cut off, and changes nothing in a dry run', async () => {
    const script = await fetched();
    const env = { GPURENT_ENROLLMENT_TOKEN: (await tokenOf()).token };
    const cut = script.slice(0, script.lastIndexOf('main "$@"'));
    expect(await run(cut, [], env)).toMatchObject({ said: '', called: undefined });
    const dry = await run(script, ['--dry-run'], env);
    expect(dry).toMatchObject({ code: 0, called: undefined });
    expect(dry.said).toContain(`enroll it at ${GRPC}`);
  });

  it.each([
    [
      'another release than the operator has named',
      ['--sha256', 'f'.repeat(64)],
      'enr_0',
      'not the one that you were given',
    ],
    ['a token that is none', [], 'sk_live', 'this is no enrollment token'],
    ['a token that is used up', [], `enr_${'0'.repeat(48)}`, 'used up, expired or revoked'],
    ['no token', [], '', 'there is no terminal to ask for it'],
    ['an option that it does not know', ['--tokn', 'x'], 'enr_0', 'usage: curl'],
  ])('refuses %s', async (_, args, token, saying) => {
    const ended = await run(await fetched(), args, { GPURENT_ENROLLMENT_TOKEN: token });
    expect(ended).toMatchObject({ code: 1, called: undefined });
    expect(ended.said).toContain(saying);
  });

  it('goes on after an answer that was no part of the release', async () => {
    const script = await fetched();
    const away = path('away');
    renameSync(RELEASE, away);
    writeFileSync(path('bin/sleep'), `#!/bin/sh\nmv '${away}' '${RELEASE}'\n`, { mode: 0o755 });
    const { token } = await tokenOf();
    const ended = await run(script, [], { GPURENT_ENROLLMENT_TOKEN: token });
    rmSync(path('bin/sleep'));
    expect(ended).toMatchObject({ code: 0, token });
    expect(ended.said).toContain('trying again');
  });

  it('refuses a release that is not the one that was announced', async () => {
    const script = await fetched();
    const before = readFileSync(RELEASE);
    writeFileSync(RELEASE, randomBytes(100));
    const ended = await run(script, [], { GPURENT_ENROLLMENT_TOKEN: (await tokenOf()).token });
    writeFileSync(RELEASE, before);
    expect(ended).toMatchObject({ code: 1, called: undefined });
    expect(ended.said).toContain('not the release that it announced');
  });

  it.each([
    ['another processor', 'uname', '[ "$1" = -s ] && echo Linux || echo aarch64', 'hosts are x86_64'],
    ['another account', 'id', 'echo 1000', 'run this as root'],
    ...['5.9.16', '4.19.0-27-amd64', 'unknown'].map((kernel) => [
      `Linux ${kernel}`,
      'uname',
      `case "$1" in -m) echo x86_64 ;; -r) echo ${kernel} ;; *) echo Linux ;; esac`,
      `this machine has Linux ${kernel}, but hosts have 5.10 or later`,
    ]),
  ])('refuses %s', async (_, program = '', says, saying) => {
    const before = readFileSync(path(`bin/${program}`), 'utf8');
    writeFileSync(path(`bin/${program}`), `#!/bin/sh\n${says}\n`);
    const ended = await run(await fetched(), ['--dry-run']);
    writeFileSync(path(`bin/${program}`), before);
    expect(ended).toMatchObject({ code: 1 });
    expect(ended.said).toContain(saying);
  });
});
