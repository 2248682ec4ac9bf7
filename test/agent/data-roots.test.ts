import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../agent/config.js';
import { dockerChecks } from '../../agent/doctor/docker-checks.js';
import type { DataRoot } from '../../agent/domain/data-root.js';
import { identityFile, saveIdentity } from '../../agent/link/identity.js';
import { DataRootGuard } from '../../agent/runtime/docker/data-roots/data-root-guard.js';
import { DataRootNotes } from '../../agent/runtime/docker/data-roots/data-root-notes.js';
import { DockerRuntime, type DockerRuntimeParts } from '../../agent/runtime/docker/docker-runtime.js';
import { EngineWatch } from '../../agent/runtime/docker/docker-watch.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { systemClock } from '../../shared/clock.js';
import { DockerDouble } from '../harness/docker-double.js';
import { ManualClock } from '../harness/manual-clock.js';

const HOST = 'this-host';
/** No Docker restarts in less time. */
const RESTART_MS = 100;
const SWITCHES: [string, Partial<DataRoot>][] = [
  ['remaps user namespaces', { path: '/var/lib/docker/100000.100000', isRemapped: true }],
  ['has another data root', { path: '/data/docker' }],
  ['has another storage driver', { storageDriver: 'btrfs' }],
  ['finds its data root empty', { engineId: 'B' }],
];

let folder: string;
let docker: DockerDouble;
let log: { level: number; msg: string }[];
let clock: ManualClock;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-data-roots-'));
  docker = await DockerDouble.listen(join(folder, 'docker.sock'));
  log = [];
  clock = new ManualClock();
});
afterEach(() => {
  docker.close();
  rmSync(folder, { recursive: true });
});

const noted = () => readdirSync(join(folder, 'data-roots')).sort();

/** The runtime of an agent's process, and how it sees Docker as a whole. */
function agentOn() {
  const engine = new Engine(docker.socket, clock);
  const logger = pino({ level: 'info' }, { write: (line) => void log.push(JSON.parse(line) as (typeof log)[0]) });
  const guard = new DataRootGuard(engine, new DataRootNotes(join(folder, 'data-roots')), HOST, logger);
  const nothing = {
    open: async () => {},
    note: () => {},
    remove: async () => {},
    prune: async () => {},
    forget: async () => {},
    forgetAllBut: async () => {},
  };
  const docked = { engine, clock, host: { hostId: HOST }, dataRoot: guard };
  const others = { kinds: { container: nothing }, networks: nothing, accessFiles: nothing };
  const runtime = new DockerRuntime({ ...docked, ...others } as unknown as DockerRuntimeParts);
  return { guard, runtime, watch: new EngineWatch(engine, HOST, '/none', guard, systemClock) };
}

/** An agent that has made two instances. */
async function agentWithInstances() {
  const agent = agentOn();
  await agent.runtime.prepare();
  for (const instanceId of ['a', 'b']) {
    await agent.guard.note(instanceId);
    docker.shown.set(instanceId, HOST);
  }
  return agent;
}

function switchTo(change: Partial<DataRoot>): () => void {
  const { root, shown } = docker;
  docker.root = { ...root, ...change };
  docker.shown = new Map();
  clock.advance(RESTART_MS);
  return () => {
    clock.advance(RESTART_MS);
    Object.assign(docker, { root, shown });
  };
}

describe.each(SWITCHES)('a Docker that %s under instances of this host', (_, change) => {
  it('is as good as away to the agent that runs, which takes none of them for gone, until that is undone', async () => {
    const { runtime, watch } = await agentWithInstances();
    expect(await watch.isAvailable()).toBe(true);
    const undo = switchTo(change);
    const unreachable = { code: 'DOCKER_UNREACHABLE' };
    await expect(runtime.find('a')).rejects.toMatchObject(unreachable);
    await expect(runtime.list()).rejects.toMatchObject(unreachable);
    await expect(runtime.stop('a')).rejects.toMatchObject(unreachable);
    await expect(runtime.remove('a')).rejects.toMatchObject(unreachable);
    expect(await watch.isAvailable()).toBe(false);
    expect(noted()).toEqual(['a', 'b']);
    expect(log.map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/does not show 2 instances that were made in \/var\/lib\/docker .*undo what was changed/),
    ]);
    undo();
    expect((await runtime.list()).map(({ instanceId }) => instanceId)).toEqual(['a', 'b']);
    expect(await watch.isAvailable()).toBe(true);
    expect(log.at(-1)?.msg).toBe('Docker shows the instances of this host again');
  });

  it('lets no agent start that does not know them any more, until that is undone', async () => {
    await agentWithInstances();
    const undo = switchTo(change);
    for (let round = 0; round < 2; round++)
      await expect(agentOn().runtime.prepare()).rejects.toMatchObject({
        code: 'SETUP',
        message: expect.stringMatching(/does not show 2 instances .*their disks are not lost: undo/) as string,
      });
    expect(noted()).toEqual(['a', 'b']);
    undo();
    await agentOn().runtime.prepare();
  });

  it('is believed by no process that brings one workload down', async () => {
    await agentWithInstances();
    switchTo(change);
    await expect(agentOn().runtime.remove('a')).rejects.toMatchObject({ code: 'DOCKER_UNREACHABLE' });
    expect(noted()).toEqual(['a', 'b']);
  });

  it('is taken by an agent that starts once there are none, or where they have moved along', async () => {
    const { runtime } = await agentWithInstances();
    await runtime.remove('b');
    const { shown } = docker;
    switchTo(change);
    docker.shown = shown;
    const { runtime: next } = agentOn();
    await next.prepare();
    expect((await next.list()).map(({ instanceId }) => instanceId)).toEqual(['a']);
    const undo = switchTo({ path: '/as/before' });
    await expect(agentOn().runtime.prepare()).rejects.toMatchObject({ code: 'SETUP' });
    undo();
    await next.remove('a');
    switchTo({ path: '/once/more' });
    await agentOn().runtime.prepare();
    expect(noted()).toEqual([]);
  });
});

it('an owner who removes the notes gives the instances up: an agent starts, to which they are gone', async () => {
  await agentWithInstances();
  switchTo({ path: '/data/docker' });
  rmSync(join(folder, 'data-roots'), { recursive: true });
  const { runtime } = agentOn();
  await runtime.prepare();
  expect(await runtime.find('a')).toEqual({ state: 'absent' });
});

it('a new place without instances is taken at a start of the agent, which looks whether disks are held to their size', async () => {
  const { runtime } = agentOn();
  await runtime.prepare();
  switchTo({ path: '/data/docker' });
  await expect(runtime.list()).rejects.toMatchObject({ code: 'DOCKER_UNREACHABLE' });
  expect(log.at(-1)?.msg).toMatch(
    /keeps its containers in \/data\/docker .* since it was restarted.*: restart the agent/,
  );
  await agentOn().runtime.prepare();
});

it('a Docker with another id that shows all instances, as after an upgrade, is the same', async () => {
  const { runtime, watch } = await agentWithInstances();
  docker.root = { ...docker.root, engineId: 'B' };
  clock.advance(RESTART_MS);
  expect(await runtime.list()).toHaveLength(2);
  expect(await runtime.find('gone')).toEqual({ state: 'absent' });
  expect(await watch.isAvailable()).toBe(true);
  expect(log).toEqual([]);
  // One that is removed from now on is gone, also to an agent that starts.
  docker.shown.delete('a');
  await agentOn().runtime.prepare();
  expect(noted()).toEqual(['b']);
});

it('a Docker is asked once where calls follow each other, and again after the time in which it can restart', async () => {
  const { runtime, watch } = await agentWithInstances();
  await runtime.list();
  const { described } = docker;
  await runtime.list();
  expect(await runtime.find('gone')).toEqual({ state: 'absent' });
  expect(await watch.isAvailable()).toBe(true);
  await watch.keepsWorkloads();
  expect(docker.described).toBe(described);
  clock.advance(RESTART_MS);
  await runtime.list();
  expect(docker.described).toBe(described + 1);
});

it('a container that Docker has removed is gone at once', async () => {
  const { runtime } = await agentWithInstances();
  // The clock stands still: nothing waits.
  await runtime.remove('a');
  expect(docker.shown.has('a')).toBe(false);
});

it('what was removed behind the agent’s back is gone, and its note with it', async () => {
  const { runtime } = await agentWithInstances();
  docker.shown.delete('a');
  expect(await runtime.find('a')).toEqual({ state: 'absent' });
  await agentOn().runtime.prepare();
  expect(noted()).toEqual(['b']);
});

it('instances that an older agent made are noted at the start, those of another host of the same Docker are not', async () => {
  docker.shown = new Map([
    ['a', HOST],
    ['other', 'another-host'],
  ]);
  await agentOn().runtime.prepare();
  expect(noted()).toEqual(['a']);
});

it('a Docker that is restarted in the middle of the look at the start is not believed', async () => {
  await agentWithInstances();
  docker.beforeList = () => {
    docker.beforeList = () => {};
    docker.root = { ...docker.root, path: '/data/docker' };
  };
  await expect(agentOn().runtime.prepare()).rejects.toMatchObject({ code: 'DOCKER_UNREACHABLE' });
});

it('a note that cannot be read counts as one of a place that is not known', async () => {
  await agentWithInstances();
  writeFileSync(join(folder, 'data-roots', 'a'), '{"path":');
  await agentOn().runtime.prepare();
  writeFileSync(join(folder, 'data-roots', 'c'), '');
  await expect(agentOn().runtime.prepare()).rejects.toThrow(/an instance that was made in a folder that is not known/);
});

it('notes that are written at once are all whole', async () => {
  const notes = new DataRootNotes(join(folder, 'data-roots'));
  const roots = ['/one', '/other'].map((path) => ({ ...docker.root, path }));
  await Promise.all(roots.map((root) => notes.note('a', root)));
  expect(await notes.read()).toEqual(new Map([['a', roots[1]]]));
});

it.each(['../identity.json', 'a/b', '', 'a.new', 'x'.repeat(65)])(
  'no file is written, or removed, for an instance named "%s"',
  async (name) => {
    const notes = new DataRootNotes(join(folder, 'data-roots'));
    await expect(notes.note(name, docker.root)).rejects.toMatchObject({ code: 'CONTAINER_FAILED' });
    await notes.forget(name);
    expect(readdirSync(folder)).toEqual(['docker.sock']);
  },
);

describe('the doctor', () => {
  const look = async (name: string, gpus = 'simulated:1') => {
    const environment = { GPURENT_AGENT_STATE_DIR: folder, GPURENT_AGENT_DOCKER_SOCKET: docker.socket };
    const checks = dockerChecks(parseConfig(environment, { gpus }), systemClock, async () => true);
    const check = checks.find((each) => each.name === name);
    return check?.look();
  };
  const remapped = { path: '/var/lib/docker/100000.100000', isRemapped: true };

  beforeEach(() => {
    const proof = { kind: 'secret', credential: 'secret' } as const;
    saveIdentity(folder, { hostId: HOST, controlPlane: '127.0.0.1:8090', proof });
  });

  it('names the data root, and what Docker does not show because of it', async () => {
    await agentWithInstances();
    const what = '/var/lib/docker (overlay2, user namespaces not remapped)';
    expect(await look('data root')).toEqual([{ verdict: 'good', what }]);
    switchTo(remapped);
    expect(await look('data root')).toEqual([
      {
        verdict: 'bad',
        what: expect.stringMatching(/100000 \(overlay2, user namespaces remapped\) and does not show 2/) as string,
        advice: expect.stringContaining('undo what was changed') as string,
      },
    ]);
  });

  it('advises to remap user namespaces, and never while there are instances', async () => {
    const advice = async () => (await look('user namespaces'))?.[0]?.advice;
    expect(await advice()).toContain('consider "userns-remap"');
    await agentWithInstances();
    expect(await advice()).toContain('there are 2 instances on this host');
  });

  it('is content where they are remapped, and says that this is untested with GPUs', async () => {
    switchTo(remapped);
    expect(await look('user namespaces')).toMatchObject([{ verdict: 'good' }]);
    expect(await look('user namespaces', 'nvidia')).toMatchObject([
      { verdict: 'doubtful', what: 'are remapped, which is untested with GPUs' },
    ]);
  });

  it('looks also at a host that is not enrolled', async () => {
    rmSync(identityFile(folder));
    expect(await look('data root')).toMatchObject([{ verdict: 'good' }]);
  });
});
