import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WorkloadState, type Command } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { RunRecorder } from '../../agent/observation/run-recorder.js';
import { TestHost, destroy, provision, stop } from './host.js';

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.close());

it('a run is told of with its end, until that is acknowledged', async () => {
  const ran = async (end: () => Promise<Command>) => {
    host.clock.advance(5_000);
    const command = await end();
    host.executor.receive(command);
    await advanceUntil('its answer', { clock: host.clock, stepMs: 100 }, () => {
      return host.outcomes(command).some((outcome) => outcome === 'DONE' || outcome === 'FAILED');
    });
    return host.results.findLast(({ commandId }) => commandId === command.commandId)?.runs ?? [];
  };
  await host.provisioned();
  const stopped = await ran(async () => stop(2));
  expect(stopped).toHaveLength(1);
  expect(stopped[0]?.ranMs).toBeGreaterThanOrEqual(5_000);
  const unacknowledged = await ran(async () => stop(3));
  expect(unacknowledged.map(({ runId }) => runId)).toEqual(stopped.map(({ runId }) => runId));
  expect(unacknowledged[0]?.endedMsAgo).toBeGreaterThanOrEqual(5_000);
  for (const { commandId } of host.results) host.journal.acknowledge(commandId);
  expect(host.journal.runsFor('i', 'another message', host.clock.now())).toEqual([]);
});

it('a run is told of that nobody was ever shown: of an attempt that failed, and of what was destroyed', async () => {
  host.runtime.sshUp = false;
  const command = await provision(host, 1);
  host.executor.receive(command);
  await eventually('its start', async () => (await host.runtime.find('i')).state === 'running');
  host.clock.advance(4_000);
  const end = destroy(2);
  host.executor.receive(end);
  const { runs } = await host.answered(end, 'DONE');
  expect(runs).toHaveLength(1);
  expect(runs[0]?.ranMs).toBeGreaterThanOrEqual(4_000);
  host.runtime.sshUp = true;
  const other = await provision(host, 1, {}, 'j');
  vi.spyOn(host.guardedPorts, 'note').mockRejectedValueOnce(new Error('a failure after the start'));
  host.clock.advance(1_000);
  host.executor.receive(other);
  expect((await host.answered(other, 'FAILED')).runs).toHaveLength(1);
});

it('the answer to a destroy tells up to when its run was up', async () => {
  await host.provisioned();
  const workload = await host.runtime.find('i');
  host.clock.advance(7_000);
  const end = destroy(2);
  host.executor.receive(end);
  const { observation } = await host.answered(end, 'DONE');
  const runId = workload.state === 'running' ? String(workload.startedAt) : '';
  expect(observation).toMatchObject({ state: WorkloadState.WORKLOAD_STATE_ABSENT, runId, runningMs: 7_000 });
});

it('the run of an agent that was killed before it could tell is told of by the next one', async () => {
  await host.provisioned();
  host.clock.advance(7_000);
  const release = host.runtime.hold('remove');
  const end = destroy(2);
  host.executor.receive(end);
  await eventually('the note', () => host.journal.runsFor('i', '', host.clock.now()).length === 1);
  host.restart();
  release();
  host.executor.receive(end);
  const { runs } = await host.answered(end, 'DONE');
  expect(runs[0]?.ranMs).toBeGreaterThanOrEqual(7_000);
});

it('an exemption of a run from being told ends with its workload', async () => {
  await host.provisioned();
  const workload = await host.runtime.find('i');
  if (workload.state !== 'running') throw new Error('not running');
  const noted: string[] = [];
  const journal = { noteEndedRun: ({ runId }: { runId: string }) => void noted.push(runId) };
  const recorder = new RunRecorder(host.runtime, journal, host.observer, host.clock);
  recorder.exempt(workload);
  await recorder.remove('i');
  expect(noted).toEqual([]);
  recorder.note('i', workload);
  expect(noted).toEqual([String(workload.startedAt)]);
});
