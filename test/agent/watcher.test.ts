import { afterEach, beforeEach, expect, it } from 'vitest';
import { WorkloadState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestHost, stop } from './host.js';

let host: TestHost;

beforeEach(async () => {
  host = new TestHost();
  await host.provisioned();
});
afterEach(() => host.close());

/** Lets time pass in steps until something has become so. */
function asTimePasses(what: string, look: () => boolean): Promise<boolean> {
  return advanceUntil(what, { clock: host.clock, stepMs: 500 }, look);
}

it('reports a workload that ended by itself, once Docker still answers some seconds later', async () => {
  const watcher = host.watch();
  host.clock.advance(60_000);
  host.runtime.exit('i', 3);
  host.emitEvent();
  await watcher.compare();
  await host.executor.idle();
  expect(host.reports).toEqual([]);
  await asTimePasses('the report', () => host.reports.length > 0);
  expect(host.reports[0]).toMatchObject({
    sequence: 1,
    observation: { state: WorkloadState.WORKLOAD_STATE_STOPPED, exit: { code: 3 } },
  });
  expect(host.journal.instance('i')?.desired).toBe('ended');
  expect(host.runtime.calls).toEqual(['create i']);
});

it('keeps a report until it is acknowledged', async () => {
  host.watch();
  host.runtime.exit('i', 0);
  await asTimePasses('the report', () => host.reports.length > 0);
  host.restart();
  expect(host.journal.unacknowledgedReports()).toHaveLength(1);
  host.journal.acknowledgeReport('i', host.reports[0]?.number ?? 0);
  expect(host.journal.unacknowledgedReports()).toEqual([]);
});

it('numbers reports upwards, also after its journal was lost', async () => {
  host.watch();
  host.clock.advance(60_000);
  host.runtime.exit('i', 0);
  await asTimePasses('the report', () => host.reports.length > 0);
  expect(host.reports[0]?.number).toBeGreaterThan(Date.parse('2026-01-01'));
  const instance = { instanceId: 'i', observation: undefined, note: '' };
  const next = host.journal.report(instance, 0);
  expect(next.number).toBe((host.reports[0]?.number ?? 0) + 1);
});

it('brings back what went down with Docker, though Docker said exit 0 first', async () => {
  host.watch();
  host.clock.advance(60_000);
  host.runtime.exit('i', 0);
  host.dockerUp = false;
  host.emitEvent();
  host.clock.advance(10_000);
  host.dockerUp = true;
  await asTimePasses('the start', () => host.runtime.calls.includes('start i'));
  await eventually('the note', () => host.reports.some(({ note }) => note.includes('started again')));
  expect(host.reports.every(({ observation }) => observation?.state === WorkloadState.WORKLOAD_STATE_RUNNING)).toBe(
    true,
  );
  expect(host.journal.instance('i')?.desired).toBe('running');
});

it('brings back what went down with a Docker that started again while no agent ran', async () => {
  await host.watch().compare();
  host.clock.advance(60_000);
  host.restart();
  host.runtime.exit('i', 0);
  host.clock.advance(60_000);
  host.dockerStartedAt = host.clock.now();
  host.watch();
  await asTimePasses('the start', () => host.runtime.calls.includes('start i'));
  expect(host.reports.every(({ observation }) => observation?.state === WorkloadState.WORKLOAD_STATE_RUNNING)).toBe(
    true,
  );
});

it('says why it cannot bring something back yet, and goes on trying', async () => {
  await host.watch().compare();
  host.clock.advance(60_000);
  host.runtime.failNext('start', new Error('no such runtime: nvidia'));
  host.runtime.exit('i', 0);
  await host.boots();
  await asTimePasses('the second start', () => host.runtime.calls.filter((call) => call === 'start i').length === 2);
  expect(host.progress).toContainEqual({
    instanceId: 'i',
    kind: 'interrupted',
    message: expect.stringContaining('no such runtime: nvidia') as string,
    gpusFree: false,
  });
  await eventually('the workload', async () => (await host.runtime.find('i')).state === 'running');
});

it('lets end what ended while no agent ran, under the same Docker', async () => {
  await host.watch().compare();
  host.restart();
  host.runtime.exit('i', 0);
  host.clock.advance(60_000);
  await host.watch().compare();
  await asTimePasses('the report', () => host.journal.instance('i')?.desired === 'ended');
  expect(host.runtime.calls).not.toContain('start i');
});

it('brings back what ran before the host booted, and lets what started since then end', async () => {
  host.runtime.exit('i', 0);
  host.restart();
  host.clock.advance(60_000);
  await host.boots();
  await host.watch().compare();
  await eventually('the start', () => host.runtime.calls.includes('start i'));
  await host.executor.idle();
  host.runtime.exit('i', 0);
  await asTimePasses('the report', () => host.journal.instance('i')?.desired === 'ended');
  expect(host.runtime.calls.filter((call) => call === 'start i')).toHaveLength(1);
});

it('reports what has vanished', async () => {
  host.runtime.vanish('i');
  await host.watch().compare();
  await eventually('the report', () => host.reports.length > 0);
  expect(host.reports[0]?.observation?.state).toBe(WorkloadState.WORKLOAD_STATE_ABSENT);
});

it('leaves alone what was stopped by command', async () => {
  const command = stop(2);
  host.executor.receive(command);
  await host.answered(command, 'DONE');
  await host.boots();
  await host.watch().compare();
  await host.executor.idle();
  expect(host.reports).toEqual([]);
  expect(host.runtime.calls).not.toContain('start i');
});

it('says nothing of a workload whose command was cut short: it is sent again', async () => {
  host.journal.begin({ commandId: 'cut short', instanceId: 'j', sequence: 1 }, 'running');
  const watcher = host.watch();
  await watcher.compare();
  host.clock.advance(60_000);
  await watcher.compare();
  expect(host.reports).toEqual([]);
});

it('looks again once, however often an end is in doubt', async () => {
  const watcher = host.watch();
  const before = host.clock.waiting;
  host.runtime.exit('i', 0);
  for (let count = 0; count < 5; count++) await watcher.compare();
  expect(host.clock.waiting).toBe(before + 1);
});

it.each(['stopped', 'absent'] as const)('what is %s and comes up after all goes down again', async (desired) => {
  // As a call lands that an agent before this one has left unanswered.
  host.journal.setDesired('i', desired);
  const watcher = host.watch();
  await watcher.compare();
  const expected = { stopped: 'stopped', absent: 'absent' }[desired];
  await eventually('it to be down', async () => (await host.runtime.find('i')).state === expected);
  expect(host.reports).toEqual([]);
});

it('numbers what is still to be reported above what the control plane has heard, and forgets what a newer answer overtakes', async () => {
  host.watch();
  host.runtime.exit('i', 0);
  await asTimePasses('the report', () => host.reports.length > 0);
  const heard = (host.reports[0]?.number ?? 0) + 100;
  host.journal.raise('i', 9, heard);
  expect(host.journal.unacknowledgedReports()).toMatchObject([{ number: heard + 1 }]);
  expect(host.journal.instance('i')?.sequence).toBe(9);
  const command = { ...stop(10), commandId: 'later' };
  host.executor.receive(command);
  await host.answered(command, 'DONE');
  expect(host.journal.unacknowledgedReports()).toEqual([]);
});

it('reports no end while a start that was given up may still land', async () => {
  const watcher = host.watch();
  host.clock.advance(60_000);
  const ends = () => host.reports.filter(({ observation }) => observation?.exit);
  const answer = host.runtime.leaveUnanswered('i');
  host.runtime.exit('i', 137);
  for (let look = 0; look < 10; look++) {
    host.clock.advance(5_000);
    await watcher.compare();
    await host.executor.idle();
  }
  expect(ends()).toEqual([]);
  // It has landed: the workload runs, and is held for running.
  await host.runtime.start('i');
  answer();
  await watcher.compare();
  expect(ends()).toEqual([]);
  expect(host.journal.instance('i')?.desired).toBe('running');
});

it('stops what runs again after its end was reported', async () => {
  const watcher = host.watch();
  host.runtime.exit('i', 137);
  await asTimePasses('the report', () => host.reports.length > 0);
  await host.runtime.start('i');
  await watcher.compare();
  await asTimePasses('its end', () => host.runtime.calls.includes('stop i'));
  expect((await host.runtime.find('i')).state).toBe('stopped');
});

it.each([
  ['a Docker that keeps its workloads was away', true],
  ['the same Docker did not answer', false],
])('lets end what ended while %s', async (_, hasRestarted) => {
  host.dockerKeepsWorkloads = hasRestarted;
  host.dockerStartedAt = 1;
  await host.watch().compare();
  host.clock.advance(60_000);
  host.dockerUp = false;
  host.emitEvent();
  host.runtime.exit('i', 0);
  host.clock.advance(10_000);
  host.dockerUp = true;
  if (hasRestarted) host.dockerStartedAt = host.clock.now();
  await asTimePasses('the report', () => host.journal.instance('i')?.desired === 'ended');
  expect(host.runtime.calls).not.toContain('start i');
});

it('takes for interrupted what went down with a Docker whose restart was noticed late', async () => {
  host.dockerStartedAt = 1;
  await host.outages.look();
  host.clock.advance(1_000);
  host.runtime.exit('i', 0);
  // Nothing in the agent gets a turn.
  host.clock.advance(45_000);
  host.dockerStartedAt = host.clock.now() - 20_000;
  host.outages.lost();
  await host.outages.look();
  const workload = await host.runtime.find('i');
  expect(workload.state === 'stopped' && host.outages.wasInterrupted(workload)).toBe(true);
});

it('brings nothing back onto a GPU that something else computes on, and says so', async () => {
  await host.watch().compare();
  const [gpu] = (await host.gpus.inventory()).gpus;
  host.gpus.processes.set(gpu?.uuid ?? '', [{ pid: 4_711, name: 'miner' }]);
  host.clock.advance(60_000);
  host.runtime.exit('i', 0);
  await host.boots();
  await asTimePasses('the word of it', () => host.progress.some(({ message }) => message.includes('miner')));
  expect(host.runtime.calls).not.toContain('start i');
  host.gpus.processes.clear();
  await asTimePasses('the start', () => host.runtime.calls.includes('start i'));
});
