import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../agent/domain/failure.js';
import { WorkloadState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { eventually } from '../../scripts/eventually.js';
import { specOf } from '../suites/runtime-suite.js';
import { TestHost, destroy, provision, start, stop } from './host.js';

let host: TestHost;

beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.close());

describe('identity', () => {
  it('a finished command that comes again is answered again, and touches nothing', async () => {
    const command = await host.provisioned();
    host.executor.receive(command);
    expect(host.outcomes(command)).toEqual(['ACCEPTED', 'DONE', 'DONE']);
    host.restart();
    host.executor.receive(command);
    expect(host.outcomes(command)).toEqual(['ACCEPTED', 'DONE', 'DONE', 'DONE']);
    expect(host.runtime.calls).toEqual(['create i']);
  });

  it('a command under way that comes again changes nothing', async () => {
    const release = host.runtime.hold('create');
    const command = await provision(host, 1);
    host.executor.receive(command);
    await host.answered(command, 'ACCEPTED');
    host.executor.receive(command);
    host.executor.receive(command);
    release();
    await host.answered(command, 'DONE');
    await host.executor.idle();
    expect(host.runtime.calls).toEqual(['create i']);
  });

  it('a stop that is older than a start stops nothing', async () => {
    await host.provisioned();
    const late = stop(2);
    const [second, third] = [stop(3), await start(host, 4)];
    for (const command of [second, third]) {
      host.executor.receive(command);
      await host.answered(command, 'DONE');
    }
    host.executor.receive(late);
    const answer = await host.answered(late, 'STALE');
    expect(answer.highestSequence).toBe(4);
    expect((await host.runtime.find('i')).state).toBe('running');
  });

  it('a command below the floor of Welcome is stale, even when the journal is new', async () => {
    host.executor.raiseFloor({ instanceId: 'i', sequence: 5, reportNumber: 0, running: false, commandOpen: true });
    const old = await provision(host, 4);
    host.executor.receive(old);
    await host.answered(old, 'STALE');
    const current = await provision(host, 5);
    host.executor.receive(current);
    await host.answered(current, 'DONE');
    expect(host.runtime.calls).toEqual(['create i']);
  });

  it('a crash in the middle is repaired when the command is sent again, with one container', async () => {
    const release = host.runtime.hold('find');
    const command = await provision(host, 1);
    host.executor.receive(command);
    await eventually('the journal', () => host.journal.command(command.commandId)?.state === 'begun');
    const crashed = host.executor;
    release();
    await host.answered(command, 'DONE');
    await crashed.idle();
    host.results.length = 0;
    host.restart();
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    expect(host.runtime.calls).toEqual(['create i']);
  });
});

it('a start that a crash has cut short starts no second run of a workload that has ended since', async () => {
  await host.provisioned();
  const halt = stop(2);
  host.executor.receive(halt);
  await host.answered(halt, 'DONE');
  const before = await host.runtime.find('i');
  if (before.state !== 'stopped') throw new Error('not stopped');
  const again = await start(host, 3);
  host.journal.begin(again, 'running');
  host.journal.noteRun(again.commandId, before.startedAt);
  host.clock.advance(1_000);
  await host.runtime.start('i');
  host.runtime.exit('i', 1);
  host.restart();
  host.executor.receive(again);
  const { observation } = await host.answeredInTime(again, 'DONE');
  expect(observation?.state).toBe(WorkloadState.WORKLOAD_STATE_STOPPED);
  expect(host.runtime.calls).toEqual(['create i', 'stop i', 'start i']);
});

it.each([
  ['its own run is left alone', false],
  ['what it has undone is started again', true],
])('a start that crashes cut short after a stop that they cut short, too: %s', async (_name, undone) => {
  await host.provisioned();
  const before = await host.runtime.find('i');
  if (before.state !== 'running') throw new Error('not running');
  host.journal.begin({ ...stop(2), commandId: 'cut short' }, 'stopped');
  const again = await start(host, 3);
  host.journal.begin(again, 'running');
  await host.runtime.stop('i');
  host.journal.noteRun(again.commandId, before.startedAt);
  host.clock.advance(1_000);
  await host.runtime.start('i');
  if (undone) {
    host.journal.noteRun(again.commandId, host.clock.now());
    await host.runtime.stop('i');
  }
  host.restart();
  const calls = host.runtime.calls.length;
  host.executor.receive(again);
  const { observation } = await host.answered(again, 'DONE');
  expect(observation?.state).toBe(WorkloadState.WORKLOAD_STATE_RUNNING);
  expect(host.runtime.calls.slice(calls)).toEqual(undone ? ['start i'] : []);
});

it('what was cut short and nobody wants any more is forgotten, and the instance is watched again', async () => {
  await host.provisioned();
  host.journal.begin({ ...stop(2), commandId: 'cut short' }, 'stopped');
  host.restart();
  host.executor.raiseFloor({ instanceId: 'i', sequence: 2, reportNumber: 0, running: true, commandOpen: false });
  expect(host.journal.isUnfinished('i')).toBe(false);
  expect(host.journal.instance('i')?.desired).toBe('running');
});

it.each(['host', 'Docker'] as const)('a provision whose %s went away under it is carried through', async (what) => {
  const release = host.runtime.hold('find');
  const command = await provision(host, 1);
  host.executor.receive(command);
  await eventually('the journal', () => host.journal.command(command.commandId)?.state === 'begun');
  host.clock.advance(60_000);
  const crashed = host.executor;
  release();
  await host.answered(command, 'DONE');
  await crashed.idle();
  await host.outages.look();
  host.runtime.exit('i', 0);
  host.clock.advance(60_000);
  host.restart();
  if (what === 'host') await host.boots();
  else host.dockerStartedAt = host.clock.now();
  const again = { ...command, commandId: 'sent again' };
  host.executor.receive(again);
  const { observation } = await host.answeredInTime(again, 'DONE');
  expect(observation?.state).toBe(WorkloadState.WORKLOAD_STATE_RUNNING);
  expect(host.runtime.calls).toEqual(['create i', 'start i']);
});

it('what an image requires of the driver is told after its pull, also if its start fails', async () => {
  const pulled = { digest: `sha256:${'a'.repeat(64)}`, requirements: ['cuda>=12.8'] };
  host.runtime.pulled = pulled;
  host.runtime.failNext('create', new Failure('CONTAINER_FAILED', 'unsatisfied condition: cuda>=12.8'));
  const command = await provision(host, 1);
  host.executor.receive(command);
  await host.answered(command, 'FAILED');
  expect(host.progress.map((progress) => progress.pulled)).toEqual([pulled]);
});

describe('a newer command', () => {
  it('aborts a pull', async () => {
    host.runtime.hold('fetchImage');
    const pulling = await provision(host, 1, { image: 'slow:1' });
    host.executor.receive(pulling);
    await eventually('the pull', () => host.progress.some(({ kind }) => kind === 'pulling'));
    const away = destroy(2);
    host.executor.receive(away);
    await host.answered(away, 'DONE');
    expect(host.outcomes(pulling)).toEqual(['ACCEPTED', 'STALE']);
    expect(host.runtime.calls).toEqual(['remove i']);
  });

  it('waits for a stop whose signal is out, and starts again', async () => {
    await host.provisioned();
    const release = host.runtime.hold('stop');
    const stopping = stop(2);
    host.executor.receive(stopping);
    await eventually('the stop', () => host.runtime.calls.includes('stop i'));
    const starting = await start(host, 3);
    host.executor.receive(starting);
    expect(host.outcomes(starting)).toEqual([]);
    release();
    await host.answered(starting, 'DONE');
    expect((await host.runtime.find('i')).state).toBe('running');
    expect(host.runtime.calls).toEqual(['create i', 'stop i', 'start i']);
  });

  it('joins a destroy that is under way', async () => {
    await host.provisioned();
    const release = host.runtime.hold('remove');
    const [first, second] = [destroy(2), destroy(3)];
    host.executor.receive(first);
    await eventually('the removal', () => host.runtime.calls.includes('remove i'));
    host.executor.receive(second);
    release();
    await host.answered(first, 'DONE');
    await host.answered(second, 'DONE');
    expect((await host.runtime.find('i')).state).toBe('absent');
  });

  it('takes the place of one that waits', async () => {
    const release = host.runtime.hold('create');
    const commands = [await provision(host, 1), stop(2), await start(host, 3), destroy(4)];
    for (const command of commands) host.executor.receive(command);
    release();
    await host.answered(commands[3] as never, 'DONE');
    expect(host.outcomes(commands[1] as never)).toEqual(['STALE']);
    expect(host.outcomes(commands[2] as never)).toEqual(['STALE']);
    expect((await host.runtime.find('i')).state).toBe('absent');
  });

  it('says done only when an earlier Docker call of the instance is answered', async () => {
    await host.provisioned();
    const answer = host.runtime.leaveUnanswered('i');
    const away = destroy(2);
    host.executor.receive(away);
    await eventually('the command', () => host.executor.isBusy('i'));
    expect(host.runtime.calls).not.toContain('remove i');
    answer();
    await host.answered(away, 'DONE');
  });
});

describe('what is already so is done:', () => {
  it('a start of what runs, a stop of what is stopped, a destroy of what is gone', async () => {
    await host.provisioned();
    const commands = [await start(host, 2), stop(3), stop(4), destroy(5), destroy(6)];
    for (const command of commands) {
      host.executor.receive(command);
      await host.answered(command, 'DONE');
    }
    expect(host.runtime.calls.filter((call) => call.startsWith('start'))).toEqual([]);
  });

  it('a provision whose workload has run and ended', async () => {
    const release = host.runtime.hold('find');
    const command = await provision(host, 1);
    await host.runtime.create('i', 1, specOf('image:1'));
    host.runtime.exit('i', 3);
    host.runtime.print('i', 'last words');
    host.executor.receive(command);
    release();
    const { observation } = await host.answeredInTime(command, 'DONE');
    expect(observation).toMatchObject({
      state: WorkloadState.WORKLOAD_STATE_STOPPED,
      exit: { code: 3, lastLines: ['last words'] },
    });
    expect(host.runtime.calls).toEqual(['create i']);
    expect(host.journal.instance('i')?.desired).toBe('ended');
  });
});
