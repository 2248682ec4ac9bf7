import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../agent/domain/failure.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { specOf } from '../suites/runtime-suite.js';
import { TestHost, provision, start, stop } from './host.js';

let host: TestHost;

beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.close());

describe('refusals and failures', () => {
  it('a start of what is gone is refused, and says what to do', async () => {
    const command = await start(host, 1);
    host.executor.receive(command);
    const answer = await host.answered(command, 'REFUSED');
    expect(answer.message).toContain('deploy again');
    expect(host.outcomes(command)).toEqual(['REFUSED']);
  });

  it('a start whose port was stolen is refused before anything is touched', async () => {
    await host.provisioned();
    const stopping = stop(2);
    host.executor.receive(stopping);
    await host.answered(stopping, 'DONE');
    host.runtime.takenPorts.add(40_000);
    const command = await start(host, 3);
    host.executor.receive(command);
    expect((await host.answered(command, 'REFUSED')).message).toContain('40000');
    expect(host.runtime.calls).not.toContain('start i');
  });

  it('a GPU that another workload uses is not attached', async () => {
    await host.provisioned();
    const other = await provision(host, 1, {}, 'other');
    host.executor.receive(other);
    expect((await host.answered(other, 'FAILED')).code).toBe('GPUS_UNAVAILABLE');
    expect(host.runtime.calls).not.toContain('create other');
  });

  it('an image that cannot be had fails the provision and leaves nothing', async () => {
    const command = await provision(host, 1, { image: 'none:1' });
    host.executor.receive(command);
    const answer = await host.answered(command, 'FAILED');
    expect(answer).toMatchObject({ code: 'IMAGE_UNAVAILABLE', message: expect.stringContaining('none:1') as string });
    expect(await host.runtime.list()).toEqual([]);
    expect(host.journal.instance('i')?.desired).toBe('absent');
  });

  it('a workload whose SSH is silent runs ten seconds after its start, and says so', async () => {
    host.runtime.sshUp = false;
    const command = await provision(host, 1);
    host.executor.receive(command);
    await host.answered(command, 'ACCEPTED');
    await eventually('its start', async () => (await host.runtime.find('i')).state === 'running');
    const { startedAt } = (await host.runtime.find('i')) as { startedAt: number };
    const { observation } = await host.answeredInTime(command, 'DONE');
    expect(observation).toMatchObject({ sshSilent: true, runId: String(startedAt) });
    expect(observation?.runningMs).toBeGreaterThanOrEqual(10_000);
    expect(observation?.runningMs).toBeLessThanOrEqual(12_000);
    host.watch();
    host.runtime.sshUp = true;
    await advanceUntil('word of SSH', { clock: host.clock, stepMs: 500 }, () => {
      return host.reports.at(-1)?.observation?.sshSilent === false;
    });
  });

  it('a stop is tried until Docker does it', async () => {
    await host.provisioned();
    for (let count = 0; count < 3; count++)
      host.runtime.failNext('stop', new Failure('DOCKER_UNREACHABLE', 'Docker does not answer'));
    const command = stop(2);
    host.executor.receive(command);
    await advanceUntil('success', { clock: host.clock, stepMs: 1_000 }, () => {
      return host.outcomes(command).includes('DONE');
    });
  });

  it('a provision outlasts a short absence of Docker, and not a long one', async () => {
    host.runtime.failNext('find', new Failure('DOCKER_UNREACHABLE', 'Docker does not answer on this host'));
    const short = await provision(host, 1);
    host.executor.receive(short);
    await advanceUntil('success', { clock: host.clock, stepMs: 500 }, () => {
      return host.outcomes(short).includes('DONE');
    });
  });

  it('a log that cannot be read fails nothing and removes nothing', async () => {
    const command = await provision(host, 1);
    await host.runtime.create('i', 1, specOf('image:1'));
    host.runtime.exit('i', 0);
    host.runtime.failNext('tail', new Error('the log driver does not support reading'));
    host.executor.receive(command);
    await host.answeredInTime(command, 'DONE');
    expect((await host.runtime.find('i')).state).toBe('stopped');
  });

  it('what an earlier attempt has made is stopped, never removed: it is a renter’s disk', async () => {
    const release = host.runtime.hold('find');
    const command = await provision(host, 1);
    host.executor.receive(command);
    await eventually('the journal', () => host.journal.command(command.commandId)?.state === 'begun');
    void host.executor.stop();
    release();
    await host.executor.idle();
    await host.runtime.create('i', 1, specOf('image:1'));
    host.restart();
    vi.spyOn(host.guardedPorts, 'note').mockRejectedValueOnce(new Error('a failure after the start'));
    host.executor.receive(command);
    await host.answered(command, 'FAILED');
    expect((await host.runtime.find('i')).state).toBe('stopped');
    expect(host.runtime.calls).not.toContain('remove i');
  });

  it('a start that was cut short by a crash is never called untouched', async () => {
    await host.provisioned();
    const stopping = stop(2);
    host.executor.receive(stopping);
    await host.answered(stopping, 'DONE');
    const command = await start(host, 3);
    host.journal.begin(command, 'running');
    host.restart();
    host.runtime.takenPorts.add(40_000);
    host.executor.receive(command);
    await host.answered(command, 'FAILED');
  });

  it('a start that passed its deadline is undone only once its outcome is known: a late one must not stay', async () => {
    await host.provisioned();
    const stopping = stop(2);
    host.executor.receive(stopping);
    await host.answered(stopping, 'DONE');
    host.runtime.failNext(
      'start',
      new Failure('DOCKER_TIMEOUT', 'Docker did not start the container within 180 seconds'),
    );
    const command = await start(host, 3);
    const begun = host.runtime.calls.length;
    const release = host.runtime.hold('start');
    host.executor.receive(command);
    await eventually('the start', () => host.runtime.calls.slice(begun).includes('start i'));
    const landLate = host.runtime.leaveUnanswered('i');
    release();
    await eventually('the failure', () => host.runtime.settledAsked > 0);
    expect(host.outcomes(command)).not.toContain('FAILED');
    expect(host.runtime.calls.slice(begun)).toEqual(['start i']);
    landLate();
    await host.answered(command, 'FAILED');
    expect(host.runtime.calls.slice(begun)).toEqual(['start i', 'stop i']);
  });

  it('a refused command leaves the instance meant to be what it was', async () => {
    await host.provisioned();
    const refused = { ...(await start(host, 2)), desired: undefined };
    host.executor.receive(refused);
    await host.answered(refused, 'REFUSED');
    expect(host.journal.instance('i')?.desired).toBe('running');
  });

  it('last lines are as many as a message can hold', async () => {
    const command = await provision(host, 1);
    await host.runtime.create('i', 1, specOf('image:1'));
    for (let line = 0; line < 200; line++) host.runtime.print('i', `${line} ${'x'.repeat(16_000)}`);
    host.runtime.exit('i', 0);
    host.executor.receive(command);
    const { observation } = await host.answeredInTime(command, 'DONE');
    const lines = observation?.exit?.lastLines ?? [];
    expect(lines.at(-1)).toMatch(/^199 /);
    expect(lines.join('').length).toBeLessThanOrEqual(64 * 1024);
  });

  it('an agent that stops takes up nothing new and leaves what it cut short to be sent again', async () => {
    host.runtime.hold('fetchImage');
    const pulling = await provision(host, 1, { image: 'slow:1' });
    host.executor.receive(pulling);
    await eventually('the pull', () => host.progress.some(({ kind }) => kind === 'pulling'));
    await host.executor.stop();
    expect(host.journal.command(pulling.commandId)?.state).toBe('begun');
    host.executor.receive(stop(2));
    expect(host.journal.instance('i')?.sequence).toBe(1);
  });
});
