import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { WorkloadState, type Command } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { Observer } from '../../agent/observation/observer.js';
import { RunRecorder } from '../../agent/observation/run-recorder.js';
import { specOf } from '../suites/runtime-suite.js';
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
  expect(host.journal.runsFor('i', 'another message', host.clock)).toEqual([]);
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
  await eventually('the note', () => host.journal.runsFor('i', '', host.clock).length === 1);
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

/** What a process of the agent that has just started says of the workload `i`. */
async function saidByNewAgent(): Promise<{ runningMs: number; ranMs: number | undefined }> {
  host.restart();
  const observer = new Observer(host.runtime, host.clock, host.journal);
  const { runningMs, exit } = observer.observe(await host.runtime.find('i'));
  return { runningMs, ranMs: exit?.ranMs };
}

it.each([
  ['ahead', HOUR_MS],
  ['back', -HOUR_MS],
])('a run lasts as long as it does, though the wall clock is set %s before the agent starts again', async (_, step) => {
  host.journal.setMeta('boot_id', 'this boot');
  await host.provisioned();
  const ageMs = host.observer.ageOf(await up());
  host.clock.advance(60_000);
  host.clock.step(step);
  expect((await saidByNewAgent()).runningMs).toBe(ageMs + 60_000);
  host.clock.step(-step);
  host.clock.advance(60_000);
  expect((await saidByNewAgent()).runningMs).toBe(ageMs + 120_000);
});

it('a run that nobody has seen yet is no older than the call that started it', async () => {
  host.journal.setMeta('boot_id', 'this boot');
  host.observer.startsNow('i');
  await host.runtime.create('i', 1, specOf('image:1'));
  host.clock.step(HOUR_MS);
  host.clock.advance(2_000);
  expect((await saidByNewAgent()).runningMs).toBe(2_000);
});

it('a run whose end nobody can date, because the clock was set while no agent ran, counts up to when it was seen', async () => {
  host.journal.setMeta('boot_id', 'this boot');
  await host.provisioned();
  const seenMs = host.observer.ageOf(await up());
  host.clock.advance(5_000);
  await host.runtime.stop('i');
  host.clock.step(HOUR_MS);
  host.clock.advance(HOUR_MS);
  const down = await host.runtime.find('i');
  expect(down.state === 'stopped' && host.observer.lasted(down)).toBe(seenMs);
  expect((await saidByNewAgent()).ranMs).toBe(0);
});

it('how long ago a run ended is told by the clock that nobody sets', async () => {
  host.journal.setMeta('boot_id', 'this boot');
  await host.provisioned();
  host.executor.receive(stop(2));
  await eventually('its end', async () => (await host.runtime.find('i')).state === 'stopped');
  await host.executor.idle();
  const [before] = host.journal.runsFor('i', 'a message', host.clock);
  host.clock.step(24 * HOUR_MS);
  host.clock.advance(1_000);
  const [after] = host.journal.runsFor('i', 'a message', host.clock);
  expect(after?.endedMsAgo).toBe((before?.endedMsAgo ?? 0) + 1_000);
  expect(after?.ranMs).toBe(before?.ranMs);
});

async function up() {
  const workload = await host.runtime.find('i');
  if (workload.state !== 'running') throw new Error('it does not run');
  return workload;
}
