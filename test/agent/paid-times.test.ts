import { afterEach, beforeEach, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { WorkloadState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { specOf } from '../suites/runtime-suite.js';
import { AssembledHost } from './assembled-host.js';
import { TestHost, start, stop } from './host.js';

let host: TestHost;
beforeEach(async () => {
  host = new TestHost();
  await host.provisioned();
});
afterEach(() => host.close());

const isUp = async () => (await host.runtime.find('i')).state === 'running';

/** Time passes, and the watcher looks. */
async function pass(watcher: ReturnType<TestHost['watch']>, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    host.clock.advance(MINUTE_MS);
    await watcher.compare();
    await host.executor.idle();
  }
}

it('a workload is stopped five minutes after its paid time when nothing is heard, and is back once it is paid for', async () => {
  const watcher = host.watch();
  watcher.hearPaidTimes([{ instanceId: 'i', paidMs: 10 * MINUTE_MS }]);
  await pass(watcher, 14);
  expect(await isUp()).toBe(true);
  await pass(watcher, 2);
  expect(await isUp()).toBe(false);
  expect(host.journal.runsFor('i', 'a message', host.clock)).toHaveLength(1);
  await pass(watcher, 5);
  // It has not ended: it waits.
  expect(await isUp()).toBe(false);
  expect(host.reports).toEqual([]);
  expect(host.journal.instance('i')?.desired).toBe('running');
  watcher.hearPaidTimes([{ instanceId: 'i', paidMs: MINUTE_MS }]);
  await advanceUntil('it to be back', { clock: host.clock, stepMs: 1_000 }, isUp);
  await eventually('the note', () => host.reports.some(({ note }) => note.includes('out of reach')));
  expect(host.reports.at(-1)?.observation?.state).toBe(WorkloadState.WORKLOAD_STATE_RUNNING);
});

it('what is told again and again goes on, also with nothing left', async () => {
  const watcher = host.watch();
  for (let round = 0; round < 10; round++) {
    watcher.hearPaidTimes([{ instanceId: 'i', paidMs: 0 }]);
    await pass(watcher, 2);
  }
  expect(await isUp()).toBe(true);
});

it('under a control plane that tells no paid times, workloads go on', async () => {
  await pass(host.watch(), 60);
  expect(await isUp()).toBe(true);
});

it('the time goes on over a restart of the agent, and no wall clock moves it', async () => {
  const first = host.watch();
  first.hearPaidTimes([{ instanceId: 'i', paidMs: 10 * MINUTE_MS }]);
  host.clock.step(24 * 60 * MINUTE_MS);
  await pass(first, 12);
  expect(await isUp()).toBe(true);
  host.restart();
  const second = host.watch();
  await pass(second, 2);
  expect(await isUp()).toBe(true);
  await pass(second, 2);
  expect(await isUp()).toBe(false);
});

it('an instance that was made after the last word has the grace alone', async () => {
  const watcher = host.watch();
  watcher.hearPaidTimes([]);
  await pass(watcher, 5);
  expect(await isUp()).toBe(true);
  await pass(watcher, 2);
  expect(await isUp()).toBe(false);
});

it('a stop of one that waits is done', async () => {
  const watcher = host.watch();
  watcher.hearPaidTimes([{ instanceId: 'i', paidMs: 0 }]);
  await pass(watcher, 6);
  const command = stop(2);
  host.executor.receive(command);
  expect((await host.answered(command, 'DONE')).observation?.state).toBe(WorkloadState.WORKLOAD_STATE_STOPPED);
  watcher.hearPaidTimes([{ instanceId: 'i', paidMs: MINUTE_MS }]);
  await pass(watcher, 3);
  expect(await isUp()).toBe(false);
});

it('a later run that comes back after an outage is not said to have waited for its pay', async () => {
  const watcher = host.watch();
  watcher.hearPaidTimes([{ instanceId: 'i', paidMs: 0 }]);
  await pass(watcher, 6);
  watcher.hearPaidTimes([{ instanceId: 'i', paidMs: 60 * MINUTE_MS }]);
  for (const command of [stop(2), await start(host, 3)]) {
    host.executor.receive(command);
    await host.answered(command, 'DONE');
  }
  host.clock.advance(MINUTE_MS);
  host.runtime.exit('i', 0);
  await host.boots();
  await advanceUntil('the note', { clock: host.clock, stepMs: 1_000 }, async () => {
    await watcher.compare();
    return host.reports.some(({ note }) => note !== '');
  });
  expect(host.reports.map(({ note }) => note).filter(Boolean)).toEqual([expect.stringContaining('Docker went away')]);
});

it('a workload that the agent did not come to stop, and that was paid for again, ends by itself', async () => {
  const workload = await host.runtime.find('i');
  if (workload.state !== 'running') throw new Error('it does not run');
  // Killed before the stop.
  await host.outages.markHalted(workload);
  host.restart();
  await host.outages.recallHalted();
  const watcher = host.watch();
  watcher.hearPaidTimes([{ instanceId: 'i', paidMs: 60 * MINUTE_MS }]);
  await watcher.compare();
  host.runtime.exit('i', 0);
  await pass(watcher, 2);
  expect(host.reports.at(-1)?.observation?.exit).toMatchObject({ code: 0 });
  expect(host.journal.instance('i')?.desired).toBe('ended');
  expect(await host.haltedRuns.read()).toEqual({});
});

it('a workload that was stopped for want of pay comes back, and says why, though its host has lost the journal', async () => {
  const assembled = new AssembledHost();
  try {
    const { runtime, clock } = assembled;
    const state = async () => (await runtime.find('i')).state;
    const inTime = (what: string, wanted: string) =>
      advanceUntil(what, { clock, stepMs: 5_000 }, async () => (await state()) === wanted);
    const pay = (paidMs: number) =>
      assembled.send({ $case: 'paidTimes', value: { instances: [{ instanceId: 'i', paidMs }] } });
    await runtime.create('i', 1, specOf('image:1', { gpuUuids: [] }));
    await assembled.start();
    await assembled.inTime('its connection', () => assembled.beats[0]);
    pay(0);
    assembled.isAway = true;
    assembled.cut();
    await inTime('the stop', 'stopped');
    await assembled.restart({ losesJournal: true });
    assembled.floors = [{ instanceId: 'i', sequence: 1, reportNumber: 1, running: true, commandOpen: false }];
    assembled.isAway = false;
    const beats = assembled.beats.length;
    await assembled.inTime('the next connection', () => assembled.beats[beats]);
    pay(60 * MINUTE_MS);
    await inTime('it to be back', 'running');
    const report = await assembled.inTime('the note', () =>
      assembled.said.find((message) => message.$case === 'workloadReport' && message.value.note !== ''),
    );
    expect(report).toMatchObject({ value: { note: expect.stringContaining('paid time ended') as string } });
  } finally {
    await assembled.close();
  }
});
