import { spawn, execFileSync, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAccounts, type Accounts } from '../../agent/measurements/accounts.js';
import { diskUseOf, type DiskUse } from '../../agent/measurements/disk-use.js';
import { Probe } from '../../agent/measurements/probe.js';
import type { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import type { LocatedWorkload } from '../../agent/runtime/workload.js';
import { eventually } from '../../scripts/eventually.js';
import { systemClock } from '../../shared/clock.js';
import { SAMPLE_IMAGE } from '../harness/docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { runWithRightsOfUnit } from '../harness/unit-rights.js';
import { takePorts } from '../harness/worker.js';
import { OwnDocker } from '../rig/own-docker.js';
import { specOf } from '../suites/runtime-suite.js';

const LOCAL = fileURLToPath(new URL('../../.local/', import.meta.url));
/** Where the build has put what measures. */
const MEASURING = new URL('../../dist/agent/measurements/', import.meta.url).href;
const MB = 1e6;

let folder: string;
beforeAll(() => {
  mkdirSync(LOCAL, { recursive: true });
  folder = mkdtempSync(join(LOCAL, 'measured-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function locate(runtime: DockerRuntime, id: string): Promise<LocatedWorkload> {
  const located = await runtime.locate(id);
  if (!located) throw new Error(`${id} does not run`);
  return located;
}

function accountsOf(located: LocatedWorkload): Accounts {
  const accounts = readAccounts(located);
  if (!accounts) throw new Error('the process is not the workload’s');
  return accounts;
}

/** What the agent measures with the rights of its unit. */
function asInstalled(located: LocatedWorkload): [DiskUse | null, Accounts] {
  const program = `
    Promise.all([import('${MEASURING}disk-use.js'), import('${MEASURING}accounts.js')]).then(
      async ([{ diskUseOf }, { readAccounts }]) => {
        const located = ${JSON.stringify(located)};
        console.log(JSON.stringify([await diskUseOf(located), readAccounts(located)]));
      },
    )`;
  return JSON.parse(runWithRightsOfUnit(process.execPath, ['-e', program])) as [DiskUse | null, Accounts];
}

const namesOfNull = (accounts: Accounts) =>
  Object.entries(accounts).flatMap(([name, value]) => (value === null ? [name] : []));

describe('of workloads on Docker', () => {
  const [busy, asleep] = [randomUUID(), randomUUID()];
  let runtime: DockerRuntime;
  const sessions: ChildProcess[] = [];

  beforeAll(async () => {
    runtime = await makeRuntime({ ports: takePorts(10) });
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'key')]);
    const sshAuthorizedKey = readFileSync(join(folder, 'key.pub'), 'utf8').trim();
    const ports = [{ port: 8_000, protocol: 'tcp', label: '', openButton: false, guard: 'none', jupyter: false }];
    const spec = { sshAuthorizedKey, ports, cpuMillis: 1_000, memoryMb: 128 };
    const serve = 'mkdir -p /www; head -c 3000000 /dev/zero >/www/big; busybox httpd -p 8000 -h /www;';
    const commands = [`${serve} while :; do :; done`, `${serve} exec sleep 100000`];
    for (const [index, id] of [busy, asleep].entries())
      await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { ...spec, command: ['sh', '-c', commands[index] ?? ''] }));
  });
  afterAll(async () => {
    for (const session of sessions) session.kill();
    for (const id of [busy, asleep]) await runtime.remove(id);
  });

  it('one that computes is told apart from one that sleeps', async () => {
    const probes = [new Probe(await locate(runtime, busy)), new Probe(await locate(runtime, asleep))] as const;
    // A container whose SSH answers has started, and only then sleeps.
    for (const { located } of probes) await eventually('SSH', () => runtime.sshAnswers(located.workload.sshPort ?? 0));
    await eventually('the end of those looks', () =>
      probes.every(({ located }) => accountsOf(located).sshSessions === 0),
    );
    const measure = () =>
      probes.map((probe) => probe.measure(systemClock.monotonic(), accountsOf(probe.located), new Map()));
    const since = systemClock.monotonic();
    measure();
    const from = accountsOf(probes[0].located).cpuUs ?? 0;
    await eventually(
      'a second of computing',
      () => (accountsOf(probes[0].located).cpuUs ?? 0) - from > 1_000_000,
      60_000,
    );
    const [computing, sleeping] = measure();
    // A second of one core, in the time that it has taken here.
    const atLeast = (0.9 * 1_000 * 1_000) / (systemClock.monotonic() - since);
    expect(computing?.cpuMillis).toBeGreaterThan(atLeast);
    expect(computing?.cpuMillis).toBeLessThan(1_100);
    expect(sleeping?.cpuMillis).toBeLessThan(100);
    for (const use of [computing, sleeping]) {
      expect(use).toMatchObject({ cpuLimitMillis: 1_000, memoryLimitBytes: 128 * 1024 * 1024, sshSessions: 0 });
      expect(use?.memoryUsedBytes).toBeGreaterThan(100_000);
      expect(use?.memoryUsedBytes).toBeLessThan(128 * 1024 * 1024);
      // Nothing enforces sizes of disks here, so nobody keeps account of what each has written.
      expect(use?.diskUsedBytes).toBeNull();
    }
    await runtime.stop(busy);
  });

  it('an SSH session is counted while it is open, and so is what goes over published ports', async () => {
    const located = await locate(runtime, asleep);
    const { sshPort, ports } = located.workload;
    await eventually('SSH', () => runtime.sshAnswers(sshPort ?? 0));
    await eventually('the end of that look', () => accountsOf(located).sshSessions === 0);
    const options = ['-i', join(folder, 'key'), '-p', String(sshPort), '-o', 'StrictHostKeyChecking=no'];
    const session = spawn('ssh', [...options, '-o', 'UserKnownHostsFile=/dev/null', 'root@127.0.0.1', 'sleep 1000'], {
      stdio: 'ignore',
    });
    sessions.push(session);
    await eventually('the session', () => accountsOf(located).sshSessions === 1);
    expect(accountsOf(located).portConnections).toBe(0);
    session.kill();
    await eventually('its end', () => accountsOf(located).sshSessions === 0);

    const before = accountsOf(located);
    const hostPort = ports[0]?.hostPort ?? 0;
    const answer = await eventually('the server', () =>
      fetch(`http://127.0.0.1:${hostPort}/big`, { headers: { connection: 'close' } }).catch(() => undefined),
    );
    expect((await answer.arrayBuffer()).byteLength).toBe(3_000_000);
    const after = accountsOf(located);
    expect(Number(after.networkOutBytes) - Number(before.networkOutBytes)).toBeGreaterThan(3_000_000);
    // It is over, and was counted all the same.
    expect(after.connectionsOpened).toBeGreaterThan(Number(before.connectionsOpened));
    const visitor = connect(hostPort, '127.0.0.1');
    await eventually('the open connection', () => accountsOf(located).portConnections === 1);
    visitor.destroy();
    await eventually('its end', () => accountsOf(located).portConnections === 0);
  });

  it('one that was stopped has no place, and after its start it has another', async () => {
    const located = await locate(runtime, asleep);
    await runtime.stop(asleep);
    expect(await runtime.locate(asleep)).toBeUndefined();
    expect(readAccounts(located)).toBeUndefined();
    await runtime.start(asleep);
    expect((await locate(runtime, asleep)).pid).not.toBe(located.pid);
    expect(await runtime.locate(randomUUID())).toBeUndefined();
  });
});

describe('of a disk with a quota', () => {
  let own: OwnDocker;
  let runtime: DockerRuntime;

  beforeAll(async () => {
    const data = join(folder, 'data');
    mkdirSync(data);
    execFileSync('truncate', ['-s', '8G', join(folder, 'file')]);
    execFileSync('mkfs.btrfs', ['-q', join(folder, 'file')]);
    execFileSync('mount', ['-o', 'loop', join(folder, 'file'), data]);
    own = await OwnDocker.start({ data });
    runtime = await makeRuntime({ socket: own.socket, ports: takePorts(10), hasDiskQuota: true });
  });
  afterAll(() => own.remove());

  it('what is used of it is what the file system counts, of each alone', async () => {
    const ids = [randomUUID(), randomUUID()];
    const commands = [`head -c ${300 * MB} /dev/urandom >/big; sync; exec sleep 1000`, 'exec sleep 1000'];
    const spec = { diskGb: 1, interactive: false, sshAuthorizedKey: '', memoryMb: 512, cpuMillis: 2_000 };
    for (const [index, id] of ids.entries())
      await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { ...spec, command: ['sh', '-c', commands[index] ?? ''] }));
    const [full, empty] = [await locate(runtime, ids[0] ?? ''), await locate(runtime, ids[1] ?? '')];
    expect(full.disk?.driver).toBe('btrfs');
    const use = await eventually(
      'the file to count',
      async () => {
        const found = await diskUseOf(full);
        return found && found.usedBytes > 300 * MB && found;
      },
      60_000,
    );
    expect(use?.usedBytes).toBeLessThan(330 * MB);
    expect(use?.limitBytes).toBe(1_000 * MB);
    expect((await diskUseOf(empty))?.usedBytes).toBeLessThan(30 * MB);
    // The agent of an installed host has fewer rights than this test.
    const [itsUse, accounts] = asInstalled(full);
    expect(itsUse).toEqual(await diskUseOf(full));
    expect(namesOfNull(accounts)).toEqual(namesOfNull(accountsOf(full)));
    // Of another size, it would not be the account of this disk.
    const { workload } = full;
    expect(await diskUseOf({ ...full, workload: { ...workload, diskGb: 2 } })).toBeNull();
    expect(await diskUseOf({ ...full, disk: { driver: 'btrfs', path: '/nowhere' } })).toBeNull();
    expect(await diskUseOf({ ...full, disk: { driver: 'overlay2', path: folder } })).toBeNull();
    for (const id of ids) await runtime.remove(id);
  });
});
