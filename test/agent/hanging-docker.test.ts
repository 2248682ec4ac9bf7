import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../agent/domain/failure.js';
import { eventually } from '../../scripts/eventually.js';
import { SetupError } from '../../shared/coded-error.js';
import { WorkloadState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { INVENTORY } from '../harness/inventory.js';
import { specOf } from '../suites/runtime-suite.js';
import { AssembledHost } from './assembled-host.js';
import { stop } from './host.js';

/** After which the control plane takes a silent host for gone. */
const LIVENESS_MS = 30_000;

let host: AssembledHost;

beforeEach(async () => {
  host = new AssembledHost();
  await host.start();
  await eventually('the first heartbeat', () => host.beats.length > 0);
});
afterEach(async () => {
  host.runtime.letGo('list');
  await host.close();
});

it('a Docker that hangs does not keep the host from being heard, and is told of', async () => {
  const { beats } = host;
  expect(beats[0]?.heartbeat.dockerAvailable).toBe(true);
  const answer = host.runtime.hold('list');
  host.diskFreeGb = () => new Promise(() => {});
  const from = beats.length;
  await host.inTime('some heartbeats', () => beats.length > from + 4);
  const heard = beats.slice(from + 1);
  expect(heard.map(({ heartbeat }) => heartbeat.dockerAvailable)).not.toContain(true);
  const gaps = heard.slice(1).map(({ at }, index) => at - (heard[index]?.at ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(LIVENESS_MS / 2);
  answer();
  host.diskFreeGb = async () => 100;
  await host.inTime('Docker to be back', () => beats.at(-1)?.heartbeat.dockerAvailable);
});

describe('a host whose Docker does not answer while it has to connect', () => {
  const hello = () => host.hellos.at(-1);
  const stateOf = (id: string) => hello()?.instances.find(({ instanceId }) => instanceId === id)?.observation?.state;

  /** One that runs, one that is stopped, one that is gone. */
  async function withInstances(): Promise<void> {
    for (const [instanceId, desired] of [
      ['up', 'running'],
      ['down', 'stopped'],
    ] as const) {
      await host.runtime.create(instanceId, 3, specOf('image:1'));
      host.journal.remember({ instanceId, sequence: 3, desired });
    }
    await host.runtime.stop('down');
    host.journal.remember({ instanceId: 'gone', sequence: 3, desired: 'absent' });
  }

  it.each(['hangs', 'is down'])(
    'comes back by what it knows, and says anew what it has once it can see: it %s',
    async (how) => {
      await withInstances();
      const answer = host.runtime.hold('list');
      if (how === 'is down') {
        host.dockerAnswers = async () => false;
        host.runtime.list = async () => Promise.reject(new Failure('DOCKER_UNREACHABLE', 'Docker does not answer'));
      }
      host.cut();
      await host.inTime('a second hello', () => host.hellos[1]);
      expect(hello()).toMatchObject({ unseen: true, inventory: { name: INVENTORY.name } });
      expect(hello()?.instances.map(({ instanceId, sequence }) => [instanceId, sequence])).toEqual([
        ['down', 3],
        ['up', 3],
      ]);
      expect(stateOf('up')).toBe(WorkloadState.WORKLOAD_STATE_STARTING);
      expect(stateOf('down')).toBe(WorkloadState.WORKLOAD_STATE_STOPPED);
      const from = host.beats.length;
      await host.inTime('heartbeats', () => host.beats.length > from + 2);
      expect(host.beats.slice(from).map(({ heartbeat }) => heartbeat.dockerAvailable)).not.toContain(true);
      expect(host.hellos).toHaveLength(2);
      answer();
      host.dockerAnswers = async () => true;
      host.runtime.list = FakeRuntime.prototype.list.bind(host.runtime);
      await host.inTime('a third hello', () => host.hellos[2]);
      expect(hello()?.unseen).toBe(false);
      expect(stateOf('up')).toBe(WorkloadState.WORKLOAD_STATE_RUNNING);
      const seen = host.beats.length;
      await host.inTime('more heartbeats', () => host.beats.length > seen + 2);
      expect(host.beats.at(-1)?.heartbeat.dockerAvailable).toBe(true);
      expect(host.hellos).toHaveLength(3);
    },
  );

  it('waits where its control plane would take that for seen', async () => {
    await host.meetOlderControlPlane();
    await withInstances();
    const answer = host.runtime.hold('list');
    host.cut();
    for (let passed = 0; passed < 120_000; passed += 10_000) {
      host.clock.advance(10_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(host.hellos).toHaveLength(2);
    answer();
    await host.inTime('a third hello', () => host.hellos[2]);
    expect(hello()?.unseen).toBe(false);
  });
});

describe('an agent that starts while Docker does not answer', () => {
  const silent = () => Promise.reject(new Failure('DOCKER_TIMEOUT', 'Docker did not answer within 10 seconds'));
  const hello = () => host.hellos.at(-1);

  it('is connected and says so, does nothing, and begins once Docker answers', async () => {
    await host.runtime.create('up', 3, specOf('image:1'));
    host.journal.remember({ instanceId: 'up', sequence: 3, desired: 'running' });
    host.prepare = silent;
    const [hellos, beats] = [host.hellos.length, host.beats.length];
    await host.restart();
    await host.inTime('a hello', () => host.hellos.length > hellos);
    expect(hello()).toMatchObject({ unseen: true, inventory: undefined, epoch: 1, bootId: 'b' });
    expect(hello()?.instances.map(({ instanceId, sequence }) => [instanceId, sequence])).toEqual([['up', 3]]);
    await host.inTime('heartbeats', () => host.beats.length > beats + 2);
    const [beat] = host.beats.slice(beats);
    expect(beat?.heartbeat).toMatchObject({ dockerAvailable: false, running: [], gpus: [{ healthy: true }] });
    const command = { ...stop(4), instanceId: 'up' };
    host.send({ $case: 'command', value: command });
    await host.inTime('more heartbeats', () => host.beats.length > beats + 5);
    expect((await host.runtime.find('up')).state).toBe('running');
    expect(host.said).toEqual([]);

    host.prepare = async () => undefined;
    await host.inTime('a hello by what it sees', () => hello()?.unseen === false);
    await host.inTime('Docker to be told of', () => host.beats.at(-1)?.heartbeat.dockerAvailable);
    host.send({ $case: 'command', value: command });
    await host.inTime('its answer', () => host.said.some(({ $case }) => $case === 'commandResult'));
    expect((await host.runtime.find('up')).state).toBe('stopped');
  });

  it('ends with what else is wrong, also while it waits', async () => {
    const wrong = new SetupError('the GPUs cannot be used');
    host.prepare = () => Promise.reject(wrong);
    await expect(host.restart()).rejects.toBe(wrong);
    host.prepare = silent;
    await host.restart();
    host.prepare = () => Promise.reject(wrong);
    await host.inTime('its end', () => host.failure);
    expect(host.failure).toBe(wrong);
  });

  it('ends where its control plane would take that for seen', async () => {
    await host.meetOlderControlPlane();
    host.prepare = silent;
    await expect(host.restart()).rejects.toThrow('Docker did not answer');
  });

  it('can be stopped while it waits, also while it asks', async () => {
    host.prepare = silent;
    await host.restart();
    const asked: ((error: Error) => void)[] = [];
    host.prepare = () => new Promise((_, reject) => asked.push(reject));
    await host.inTime('the next try', () => asked[0]);
    host.prepare = silent;
    await host.restart();
    const hellos = host.hellos.length;
    asked[0]?.(new SetupError('too late'));
    host.prepare = async () => undefined;
    await host.inTime('the hello of the one that goes on', () => host.hellos.at(-1)?.unseen === false);
    expect(host.failure).toBeUndefined();
    expect(host.hellos.length).toBeLessThanOrEqual(hellos + 2);
  });
});
