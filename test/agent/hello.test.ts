import { afterEach, beforeEach, expect, it } from 'vitest';
import { Observer } from '../../agent/observation/observer.js';
import { eventually } from '../../scripts/eventually.js';
import { WorkloadState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { specOf } from '../suites/runtime-suite.js';
import { AssembledHost } from './assembled-host.js';

let host: AssembledHost;
beforeEach(() => {
  host = new AssembledHost();
});
afterEach(() => host.close());

async function downBefore(instanceId: string, desired: 'running' | 'stopped' | 'ended'): Promise<void> {
  await host.runtime.create(instanceId, 1, specOf('image:1'));
  host.runtime.exit(instanceId, 0);
  host.journal.remember({ instanceId, sequence: 1, desired });
}

it('tells of what the host’s boot has interrupted as of what is about to run, and of the rest as down', async () => {
  host.journal.setMeta('boot_id', 'the one before');
  await downBefore('interrupted', 'running');
  await downBefore('stopped', 'stopped');
  await downBefore('ended', 'ended');
  host.journal.remember({ instanceId: 'vanished', sequence: 1, desired: 'stopped' });
  // So that it is not back yet.
  const release = host.runtime.hold('start');
  await host.start();
  const hello = await eventually('Hello', () => host.hellos[0]);
  const told = hello.instances.map(({ instanceId, observation }) => [instanceId, observation?.state]);
  expect(Object.fromEntries(told)).toEqual({
    interrupted: WorkloadState.WORKLOAD_STATE_STARTING,
    stopped: WorkloadState.WORKLOAD_STATE_STOPPED,
    ended: WorkloadState.WORKLOAD_STATE_STOPPED,
    vanished: WorkloadState.WORKLOAD_STATE_ABSENT,
  });
  expect(hello.instances.filter(({ observation }) => observation?.exit).map(({ instanceId }) => instanceId)).toEqual([
    'ended',
  ]);
  release();
});

it('names of what runs its port, its image and whose it is: an older copy of the store has that from here', async () => {
  await host.runtime.create('runs', 1, specOf('image:1', { origin: 'sealed' }));
  const workload = await host.runtime.find('runs');
  if (workload.state !== 'running') throw new Error('it does not run');
  host.journal.remember({ instanceId: 'runs', sequence: 1, desired: 'running' });
  await host.start();
  const hello = await eventually('Hello', () => host.hellos[0]);
  const { sshPort } = workload;
  expect(sshPort).toBeGreaterThan(1_023);
  expect(hello.instances).toMatchObject([{ origin: 'sealed', observation: { sshPort, image: 'image:1' } }]);
});

it('knows the link of what runs also before it has asked Docker for the run', async () => {
  const observer = new Observer(host.runtime, host.clock, host.journal);
  await host.runtime.create('runs', 1, specOf('image:1'));
  const workload = await host.runtime.find('runs');
  if (workload.state !== 'running') throw new Error('it does not run');
  expect(observer.latestLinks('runs')).toEqual({ jupyterUrl: '', openUrl: '' });
  observer.noteLinks(workload, { openUrl: 'http://127.0.0.1:1/' });
  expect(observer.latestLinks('runs')).toEqual({ jupyterUrl: '', openUrl: 'http://127.0.0.1:1/' });
});

it.each([
  ['of this release', true, 2],
  ['of the release before', undefined, 0],
])('measures what runs: a control plane %s hears of it', async (_, takes, reports) => {
  await host.runtime.create('runs', 1, specOf('image:1'));
  const workload = await host.runtime.find('runs');
  if (workload.state !== 'running') throw new Error('it does not run');
  host.journal.remember({ instanceId: 'runs', sequence: 1, desired: 'running' });
  host.takesMeasurements = takes;
  host.instruments = {
    locate: async () => ({ workload, pid: 1, containerId: 'c', sshContainerPort: null, disk: null }),
    accounts: () => undefined,
    diskUse: async () => ({ usedBytes: 5, limitBytes: 10 }),
  };
  await host.start();
  const said = (kind: string) => host.said.filter(({ $case }) => $case === kind);
  await host.inTime('two minutes', () => host.beats.length > 12);
  expect(said('measurementReport')).toHaveLength(reports);
  host.send({ $case: 'measurementQuery', value: { queryId: 'q', instanceId: 'runs' } });
  const [answer] = said('measurementAnswer');
  expect(answer?.value).toMatchObject({ queryId: 'q', points: Array.from({ length: 12 }, () => ({ gpus: [{}] })) });
  expect(host.hellos[0]?.answersMeasurementQueries).toBe(true);
});
