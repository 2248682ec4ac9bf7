import { afterEach, beforeEach, expect, it } from 'vitest';
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
