import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { RELAY_USER, type RelayOrder } from '../../agent/pulls/order.js';
import { relayUnit, type RunningRelay } from '../../agent/pulls/client.js';
import { eventually } from '../../scripts/eventually.js';
import { ManualClock } from '../harness/manual-clock.js';
import { serveRelays, startRelay } from '../harness/relay.js';

const ORDER: RelayOrder = {
  registries: [{ origin: 'https://192.0.2.1', isMirror: false, authorities: [] }],
  repository: 'team/app',
  reference: '1',
  insecureNetworks: [],
  credentials: { username: 'owner', password: 'a registry password' },
  allowed: [],
  mostBytes: 1,
  secret: 'a secret of this pull',
};

const started: RunningRelay[] = [];
afterEach(() => {
  for (const relay of started.splice(0)) relay.end();
});

async function start(order: Partial<RelayOrder> = {}, by = startRelay): Promise<RunningRelay> {
  const relay = await by({ ...ORDER, ...order });
  started.push(relay);
  return relay;
}

const authorization = `Basic ${Buffer.from(`${RELAY_USER}:${ORDER.secret}`).toString('base64')}`;
const ask = (relay: RunningRelay, path: string) =>
  fetch(`http://127.0.0.1:${relay.port}/v2/${path}`, { headers: { authorization } });

it('is a process without root, environment, or a word of its order on its command line', async () => {
  const relay = await start();
  const of = (name: string) => readFileSync(`/proc/${relay.pid}/${name}`, 'utf8');
  if (process.getuid?.() === 0) {
    expect(of('status')).toMatch(/^Uid:\t65534\t65534\t65534\t65534$/m);
    expect(of('status')).toMatch(/^Gid:\t65534\t65534\t65534\t65534$/m);
    expect(of('status')).toMatch(/^Groups:\s*$/m);
    expect(of('status')).toMatch(/^CapEff:\t0+$/m);
  }
  expect(of('environ')).toBe('');
  for (const word of ['password', 'team/app', 'secret']) expect(of('cmdline')).not.toContain(word);
});

it('answers within moments of its start; it prints how many', async () => {
  const before = performance.now();
  const relay = await start();
  expect((await ask(relay, '')).status).toBe(200);
  const tookMs = Math.round(performance.now() - before);
  const [, kib = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${relay.pid}/status`, 'utf8')) ?? [];
  process.stdout.write(`a pull relay: first answer after ${tookMs} ms, ${Math.round(Number(kib) / 1024)} MiB\n`);
});

it('checks addresses as a process, too', async () => {
  const registries = [{ origin: 'https://127.0.0.1', isMirror: false, authorities: [] }];
  const answer = await ask(await start({ registries }), 'gpurent/pulling/manifests/1');
  expect(await answer.text()).toContain('forbidden_address');
});

it('that crashes is told of', async () => {
  const relay = await start();
  process.kill(relay.pid, 'SIGKILL');
  await eventually('its end', () => relay.ended.aborted);
});

it('ends with the pull', async () => {
  const relay = await start();
  relay.end();
  await eventually('its end', () => !existsSync(`/proc/${relay.pid}`));
});

it('that cannot be started fails the pull', async () => {
  await expect(start({ registries: [{ origin: 'no address', isMirror: false, authorities: [] }] })).rejects.toThrow(
    /has ended/,
  );
});

describe('behind the socket of a unit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'relays-'));
  const path = join(folder, 'pull.sock');
  const server = serveRelays(path);
  const startUnit = relayUnit(new ManualClock(), path);
  const others: Server[] = [];
  afterAll(() => {
    for (const each of [server, ...others]) each.close();
    rmSync(folder, { recursive: true });
  });

  it('answers, checks addresses, and ends with the pull', async () => {
    const registries = [{ origin: 'https://127.0.0.1', isMirror: false, authorities: [] }];
    const relay = await start({ registries }, startUnit);
    const answer = await ask(relay, 'gpurent/pulling/manifests/1');
    expect(await answer.text()).toContain('forbidden_address');
    relay.end();
    await eventually('its end', () => !existsSync(`/proc/${relay.pid}`));
  });

  it('that crashes is told of', async () => {
    const relay = await start({}, startUnit);
    process.kill(relay.pid, 'SIGKILL');
    await eventually('its end', () => relay.ended.aborted);
  });

  /** Something else behind the socket. */
  async function served(listener: (socket: Socket) => void): Promise<string> {
    const strange = `${path}.strange`;
    rmSync(strange, { force: true });
    const other = createServer(listener).listen(strange);
    await once(other, 'listening');
    others.push(other);
    return strange;
  }

  it('is listened to for one number, and not for long', async () => {
    const talking = await served((socket) => socket.write('x'.repeat(1_025)));
    await expect(start({}, relayUnit(new ManualClock(), talking))).rejects.toThrow(/has ended/);
    const clock = new ManualClock();
    const silent = relayUnit(clock, await served(() => undefined));
    const failed = expect(start({}, silent)).rejects.toThrow(/does not start/);
    clock.advance(15_000);
    await failed;
  });

  it.each([0, 65_536, '1', null])('fails the pull where it says that its port is %j', async (port) => {
    const strange = await served((socket) => socket.write(`${JSON.stringify({ port, pid: 1 })}\n`));
    await expect(start({}, relayUnit(new ManualClock(), strange))).rejects.toThrow(/has ended/);
  });

  it('fails the pull where nobody serves it', async () => {
    await expect(start({}, relayUnit(new ManualClock(), `${path}.none`))).rejects.toThrow(/has ended/);
  });
});
