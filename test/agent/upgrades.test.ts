import { status } from '@grpc/grpc-js';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import semver from 'semver';
import type { Agent } from '../../agent/assemble.js';
import { Journal } from '../../agent/journal/journal.js';
import { dialer, releaseOpener } from '../../agent/link/dial.js';
import { describeSnapshot } from '../../agent/status/snapshot.js';
import { eventually } from '../../scripts/eventually.js';
import { MIB } from '../../shared/bytes.js';
import { ReleaseFile, UpgradeState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { REDIAL_AFTER } from '../../shared/protocol.js';
import { tarballOf } from '../../shared/release/newer.js';
import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import { VERSION } from '../../shared/version.js';
import { advanceUntil } from '../harness/advance-until.js';
import { agentOnFakes } from '../harness/agent-on-fakes.js';
import { ManualClock } from '../harness/manual-clock.js';
import { ReleaseServer, send } from '../harness/release-server.js';
import { ReleaseKey, signedRelease } from '../harness/signed-release.js';

const NEXT = '99.0.0';
const NAME = tarballOf(NEXT);
const GIB = 1024 * MIB;
const {
  UPGRADE_STATE_LOADING: LOADING,
  UPGRADE_STATE_INSTALLING: INSTALLING,
  UPGRADE_STATE_FAILED: FAILED,
} = UpgradeState;
const CONTENT = randomBytes(3 * MIB + 5);
const KEY = new ReleaseKey();

let folder: string;
let clock: ManualClock;
let server: ReleaseServer;
let agent: Agent;
let obstacles: string[];
let freeBytes: number;
/** How often the agent has asked for a file. */
let opened: number;
/** Those that the agent has not ended yet. */
const streams = new Set<unknown>();

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-upgrade-'));
  writeFileSync(join(folder, 'release.pub'), KEY.text);
  [obstacles, freeBytes, opened] = [[], 100 * GIB, 0];
  clock = new ManualClock();
  server = new ReleaseServer();
  server.files = signedRelease(KEY, NAME, CONTENT);
  await server.start();
  await start();
});
afterEach(async () => {
  await agent.stop();
  server.stop();
  rmSync(folder, { recursive: true });
});

const at = (...path: string[]) => join(folder, 'upgrade', ...path);
const last = () => server.reports.at(-1);

async function start(): Promise<void> {
  const proof = { kind: 'secret', credential: 'the host' } as const;
  const identity = () => ({ hostId: 'host', controlPlane: server.address, proof });
  const open = releaseOpener(identity);
  agent = agentOnFakes({
    clock,
    dial: dialer(identity),
    journal: new Journal(join(folder, 'journal.db')),
    upgrades: {
      folder: at(),
      key: join(folder, 'release.pub'),
      obstacles: () => obstacles,
      missing: () => obstacles,
      open: (...asked) => {
        opened += 1;
        const stream = open(...asked);
        const cancel = stream.cancel.bind(stream);
        streams.add(stream);
        stream.cancel = () => {
          streams.delete(stream);
          cancel();
        };
        return stream;
      },
      freeBytes: async () => freeBytes,
    },
  });
  const { length } = server.hellos;
  await agent.start();
  await eventually('Hello', () => server.hellos.length > length);
}

/** Asks for an upgrade, and returns the report with which it ends or is handed over. */
async function upgrade(version = NEXT) {
  const { length } = server.reports;
  server.ask(version);
  return eventually('the end', () =>
    server.reports.slice(length).find(({ state }) => state === FAILED || state === INSTALLING),
  );
}

/** No time passes while the agent and its control plane speak of a file. */
const parties = [() => eventually('an answer', () => streams.size === 0)];

/** Time passes until the agent asks for a file once more. */
async function asksAgain(): Promise<void> {
  const before = opened;
  const answered = () => eventually('an answer', () => streams.size === 0 || opened > before);
  await advanceUntil('the next attempt', { clock, stepMs: 250, parties: [answered] }, () => opened > before);
}

/** Waits for a report, and lets time pass. */
const inTime = (what: string, state: UpgradeState) =>
  advanceUntil(what, { clock, stepMs: 10_000, parties }, () => (last()?.state === state ? last() : undefined));

/** Answers the first `times` requests for the tarball otherwise. */
function onTarball(
  times: number,
  answer: Parameters<typeof send>[0] extends infer Load ? (load: Load) => void : never,
) {
  let left = times;
  server.answer = (load) => {
    if (load.request.file !== ReleaseFile.RELEASE_FILE_TARBALL || left-- <= 0) return false;
    answer(load);
    return true;
  };
}

const fails = (code: status) => (load: Parameters<typeof send>[0]) =>
  void load.emit('error', { code, details: 'as the test wants it' });

it('loads the release that is asked for by the identity of the host, checks it and hands it over', async () => {
  expect(server.hellos[0]?.takesUpgrades).toBe(true);
  expect(await upgrade()).toEqual({ version: NEXT, state: INSTALLING, reason: '' });
  expect(server.reports.map(({ state }) => state)).toEqual([LOADING, INSTALLING]);
  expect(readdirSync(at('ready')).sort()).toEqual(['SHA256SUMS', 'SHA256SUMS.minisig', NAME]);
  expect(readFileSync(at('ready', NAME)).equals(CONTENT)).toBe(true);
  expect(statSync(at()).mode & 0o777).toBe(0o700);
  expect(readdirSync(at())).toEqual(['ready']);
  expect(server.loads.map(({ authorization }) => authorization)).toEqual(Array(3).fill('Bearer the host'));
});

describe('refuses, and loads nothing:', () => {
  const core = semver.coerce(VERSION)?.version ?? '';
  it.each([
    ['its own version', VERSION, 'is not higher than'],
    ['its own version, built otherwise', `${VERSION}+other`, 'is not higher than'],
    ['a lower version', '0.0.1', 'is not higher than'],
    ['a pre-release before its own', `${core}-0`, 'is not higher than'],
    ['no version', '', 'names no valid version'],
    ['a version with a v', 'v99.0.0', 'names no valid version'],
    ['a part of a version', '99', 'names no valid version'],
    ['a path', '../../99.0.0', 'names no valid version'],
    ['several lines', '99.0.0\n', 'names no valid version'],
    ['a huge version', `99.0.0-${'x'.repeat(4 * MIB)}`, 'names no valid version'],
  ])('%s', async (_, version, reason) => {
    const report = await upgrade(version);
    expect(report.state).toBe(FAILED);
    expect(report.reason).toContain(reason);
    expect(report.version.length).toBeLessThanOrEqual(64);
    expect([server.loads, existsSync(at())]).toEqual([[], false]);
    // A refusal is no failure of an upgrade.
    expect((await agent.snapshot()).upgradeFaults).toEqual([]);
  });

  it('any version, where the owner does not allow it', async () => {
    obstacles = ['its owner does not allow it (GPURENT_AGENT_UPGRADES)'];
    expect((await upgrade()).reason).toBe(
      'this host does not upgrade itself: its owner does not allow it (GPURENT_AGENT_UPGRADES)',
    );
    expect(server.loads).toEqual([]);
    server.cut();
    await advanceUntil('Hello', { clock, stepMs: 500 }, () => server.hellos[1]);
    expect(server.hellos[1]?.takesUpgrades).toBe(false);
  });
});

describe('hands nothing over that is not what it should be:', () => {
  afterEach(() => {
    expect(existsSync(at('ready'))).toBe(false);
    expect(existsSync(at('loading'))).toBe(false);
  });

  it.each<[string, RegExp, () => void]>([
    [
      'signed by another key',
      /^the signature is by the key/,
      () => (server.files = signedRelease(new ReleaseKey(), NAME, CONTENT)),
    ],
    [
      'another tarball of the same size',
      /is not the file that was signed/,
      () => server.files && (server.files.tarball.content = randomBytes(CONTENT.length)),
    ],
    [
      'a release of another version',
      /^the control plane gives gpurent-98\.0\.0-linux-x64\.tar\.gz instead of/,
      () => (server.files = signedRelease(KEY, tarballOf('98.0.0'), CONTENT)),
    ],
    [
      'an earlier release under a new name',
      /^SHA256SUMS does not name/,
      () => {
        const earlier = signedRelease(KEY, tarballOf('98.0.0'), CONTENT);
        server.files = { ...earlier, tarball: { name: NAME, content: CONTENT } };
      },
    ],
    ['a name that is a path', /^the control plane gives \.\.\/x instead of/, () => rename('../x')],
    ['an empty tarball', /is empty$/, () => server.files && (server.files.tarball.content = Buffer.alloc(0))],
    ['no release at all', /^the control plane gives no release: there is no release/, () => (server.files = undefined)],
    ['a key that is gone', /release.pub cannot be read/, () => rmSync(join(folder, 'release.pub'))],
  ])('%s', async (_, reason, damage) => {
    damage();
    const report = await upgrade();
    expect(report).toMatchObject({ version: NEXT, state: FAILED });
    expect(report.reason).toMatch(reason);
    const shown = await agent.snapshot();
    expect(shown.upgradeFaults).toEqual([`the upgrade to ${NEXT} has failed: ${report.reason}`]);
    expect(describeSnapshot(shown)).toContain(`\ndoes NOT upgrade itself: the upgrade to ${NEXT} has failed: `);
  });

  function rename(name: string): void {
    if (server.files) server.files.tarball.name = name;
  }
  /** Sends as fast as the host takes it, until the host ends it. */
  const endless = (load: Parameters<typeof send>[0], size: number, data: Buffer) => {
    let isOver = false;
    load.on('cancelled', () => (isOver = true));
    const more = () => {
      while (!isOver) if (!load.write({ name: '', size: 0, data })) return void load.once('drain', more);
    };
    load.write({ name: NAME, size, data });
    more();
  };

  it.each<[string, RegExp, number, Buffer]>([
    ['more than was announced, for ever', /more of .* than the 131072 bytes/, 128 * 1024, Buffer.alloc(64 * 1024)],
    ['nothing, for ever', /without content$/, 128 * 1024, Buffer.alloc(0)],
    ['large messages', /too much of .* in one message$/, 10 * MIB, Buffer.alloc(65 * 1024)],
    ['more than a release can have', /is too large for a release/, GIB, Buffer.alloc(1)],
    ['more than the disk has room for', /MiB free, and the upgrade needs/, 51 * MIB, Buffer.alloc(1)],
  ])('a control plane that sends %s', async (_, reason, size, data) => {
    freeBytes = GIB + 50 * MIB;
    onTarball(1, (load) => endless(load, size, data));
    expect((await upgrade()).reason).toMatch(reason);
    // It is not asked again.
    expect(opened).toBe(3);
  });

  it('a control plane whose connection is lost again and again', async () => {
    onTarball(100, fails(status.UNAVAILABLE));
    server.ask(NEXT);
    const report = await inTime('the end', FAILED);
    expect(report.reason).toContain('the connection was lost 21 times');
    expect(opened).toBe(2 + 21);
  });

  it('a control plane at which there is never room', async () => {
    onTarball(1_000, (load) => {
      load.metadata.set(REDIAL_AFTER, '1');
      load.emit('error', { code: status.RESOURCE_EXHAUSTED, details: 'too many', metadata: load.metadata });
    });
    server.ask(NEXT);
    const begin = clock.monotonic();
    const report = await inTime('the end', FAILED);
    expect(report.reason).toBe('the release could not be loaded within two hours');
    expect(clock.monotonic() - begin).toBeGreaterThanOrEqual(2 * HOUR_MS);
    // However soon the control plane wants to be asked.
    expect(opened).toBeLessThan((2 * HOUR_MS) / 15_000 + 3);
  });
});

it('goes on where it was after a connection that broke off, and one that hung', async () => {
  const half = 2 * MIB;
  onTarball(1, (load) => {
    const tarball = server.fileOf(load.request.file);
    if (tarball) send(load, tarball, half);
    setImmediate(() => fails(status.UNAVAILABLE)(load));
  });
  server.ask(NEXT);
  await eventually('the first part', () => server.loads.length === 3);
  onTarball(1, () => undefined);
  await asksAgain();
  await eventually('the second attempt', () => server.loads.length === 4);
  const { offset } = server.loads[3] ?? {};
  expect(offset).toBeGreaterThan(0);
  expect(offset).toBeLessThanOrEqual(half);
  clock.advance(30_000);
  await asksAgain();
  await eventually('the end', () => last()?.state === INSTALLING);
  expect(server.loads[4]?.offset).toBe(offset);
  expect(readFileSync(at('ready', NAME)).equals(CONTENT)).toBe(true);
});

it('a second wish changes nothing while an upgrade is under way, and one for another version is refused', async () => {
  onTarball(1, () => undefined);
  server.ask(NEXT);
  await eventually('the load', () => server.loads.length === 3);
  server.ask(NEXT);
  expect((await upgrade('99.1.0')).reason).toBe(`the upgrade to ${NEXT} is under way`);
  expect(server.reports.map(({ state }) => state)).toEqual([LOADING, FAILED]);
  expect(server.loads).toHaveLength(3);
  // It is also reported again after a reconnect.
  server.cut();
  await advanceUntil('Hello', { clock, stepMs: 500 }, () => server.hellos[1]);
  await eventually('the report', () => server.reports.length === 3);
  expect(last()).toMatchObject({ version: NEXT, state: LOADING });
});

it('reports a failure after each connection, also of a later agent, until another upgrade begins', async () => {
  server.files = undefined;
  const { reason } = await upgrade();
  const failed = { version: NEXT, state: FAILED, reason };
  server.cut();
  await advanceUntil('Hello', { clock, stepMs: 500 }, () => server.hellos[1]);
  await eventually('the report', () => server.reports.length === 3);
  expect(last()).toEqual(failed);
  await agent.stop();
  await start();
  await eventually('the report', () => server.reports.length === 4);
  expect(last()).toEqual(failed);
  // A control plane that has not heard it yet asks again at once.
  const { length } = server.loads;
  expect(await upgrade()).toEqual(failed);
  expect(server.loads).toHaveLength(length);
  clock.advance(MINUTE_MS);
  server.files = signedRelease(KEY, NAME, CONTENT);
  expect(await upgrade()).toMatchObject({ state: INSTALLING });
  expect(readdirSync(at())).toEqual(['ready']);
  expect((await agent.snapshot()).upgradeFaults).toEqual([]);
});

it('forgets the failure of an upgrade that its owner has made since', async () => {
  await agent.stop();
  mkdirSync(at(), { recursive: true });
  writeFileSync(at('failed.json'), JSON.stringify({ version: VERSION, reason: 'then', at: 0 }));
  await start();
  await eventually('the file to be gone', () => !existsSync(at('failed.json')));
  expect((await agent.snapshot()).upgradeFaults).toEqual([]);
});

it('hears from the upgrade unit that the installation has failed, also after a restart', async () => {
  await upgrade();
  await agent.stop();
  await start();
  await eventually('the report', () => server.reports.length === 3);
  expect(last()).toMatchObject({ version: NEXT, state: INSTALLING });
  const reason = `the installation has failed\n${'x'.repeat(10_000)}`;
  writeFileSync(at('failed.json'), JSON.stringify({ version: NEXT, reason, at: clock.now() }));
  const report = await inTime('the failure', FAILED);
  expect(report.reason).toMatch(/^the installation has failed x+$/);
  expect(report.reason).toHaveLength(500);
});

it('gives up an upgrade unit that never says anything, and takes the release back', async () => {
  await upgrade();
  expect((await inTime('the end', FAILED)).reason).toContain('the upgrade unit has not installed the release');
  expect(existsSync(at('ready'))).toBe(false);
});

it.each([
  ['no JSON', '{'],
  ['something else', '{"version": 1}'],
  ['a version that is none', JSON.stringify({ version: '../x', reason: 'x', at: 0 })],
  ['nothing but null', 'null'],
])('starts where the file of the latest failure has %s', async (_, text) => {
  await agent.stop();
  mkdirSync(at(), { recursive: true });
  writeFileSync(at('failed.json'), text);
  await start();
  expect((await agent.snapshot()).upgradeFaults).toEqual([]);
});
