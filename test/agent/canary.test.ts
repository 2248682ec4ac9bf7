import { afterEach, beforeEach, expect, it } from 'vitest';
import { Canary } from '../../agent/canary/canary.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { silentLogger } from '../../shared/logger.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { ManualClock } from '../harness/manual-clock.js';
import { specOf } from '../suites/runtime-suite.js';
import { TestHost, provision } from './host.js';

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
  host.runtime.sshUp = false;
});
afterEach(() => host.close());

const outcome = async () => {
  const command = await provision(host, 1);
  host.executor.receive(command);
  await advanceUntil('its answer', { clock: host.clock, stepMs: 500 }, () => {
    return host.outcomes(command).some((each) => each === 'DONE' || each === 'FAILED');
  });
  return host.results.findLast(({ commandId }) => commandId === command.commandId);
};

it('a workload whose SSH is silent runs where the canary answers', async () => {
  const result = await outcome();
  expect(result?.code).toBe('');
  expect(result?.observation?.sshSilent).toBe(true);
});

it('where the canary is silent, too, the attempt fails, and its run is told to nobody', async () => {
  host.canary.answers = async () => false;
  const result = await outcome();
  expect(result).toMatchObject({ code: 'HOST_UNREACHABLE', runs: [] });
  expect((await host.runtime.find('i')).state).toBe('absent');
});

it('SSH that answers soon after the start is noticed soon', async () => {
  const [upAt, began] = [40, host.clock.monotonic()];
  const command = await provision(host, 1);
  host.executor.receive(command);
  await advanceUntil('its answer', { clock: host.clock, stepMs: 2 }, () => {
    host.runtime.sshUp = host.clock.monotonic() - began >= upAt;
    return host.outcomes(command).includes('DONE');
  });
  expect(host.clock.monotonic() - began).toBeLessThan(2 * upAt);
});

it('where nothing is silent, no canary is asked', async () => {
  host.runtime.sshUp = true;
  host.canary.answers = () => Promise.reject(new Error('asked'));
  expect((await outcome())?.code).toBe('');
});

/** A canary on a runtime of its own, whose clock runs while it is asked. */
function lone() {
  const clock = new ManualClock();
  const runtime = Object.assign(new FakeRuntime(clock), { prepare: async () => undefined });
  const canary = new Canary(runtime, async () => 'image:1', clock, silentLogger);
  const ask = async () => {
    let answer: boolean | undefined;
    void canary.answers().then((answers) => (answer = answers));
    await advanceUntil('its verdict', { clock, stepMs: 500 }, () => answer !== undefined);
    await eventually('it to be gone', async () => (await runtime.list()).length === 0);
    return answer;
  };
  return { clock, runtime, canary, ask };
}

it('a host that is busy for seconds is not taken for one that nobody reaches', async () => {
  const { clock, runtime, ask } = lone();
  const began = clock.monotonic();
  Object.defineProperty(runtime, 'sshUp', { get: () => clock.monotonic() - began > 15_000 });
  expect(await ask()).toBe(true);
});

it('its verdict holds the host back until it answers again', async () => {
  const { clock, runtime, canary, ask } = lone();
  expect(await ask()).toBe(true);
  expect(canary.obstacle).toBe('');
  runtime.sshUp = false;
  // The good one is still valid.
  expect(await canary.answers()).toBe(true);
  clock.advance(10_000);
  expect(await ask()).toBe(false);
  expect(canary.obstacle).toContain('does not answer');
  runtime.sshUp = true;
  await canary.lookAgain();
  expect(canary.obstacle).toBe('');
});

it('many that ask at once share one, and one that cannot be made says nothing against its host', async () => {
  const { runtime, canary } = lone();
  await Promise.all([canary.answers(), canary.answers(), canary.answers()]);
  expect(runtime.calls.filter((call) => call.startsWith('create'))).toHaveLength(1);
  const other = lone();
  other.runtime.failNext('create', new Error('no room'));
  expect(await other.ask()).toBe(true);
  expect(other.canary.obstacle).toBe('');
});

it('no more than three are there at once, and those that stay are removed as soon as that is possible', async () => {
  const { clock, runtime, canary } = lone();
  const judge = async () => {
    expect(await canary.answers()).toBe(true);
    clock.advance(60_000);
    return (await runtime.list()).length;
  };
  const letGo = runtime.hold('remove');
  expect([await judge(), await judge(), await judge(), await judge()]).toEqual([1, 2, 3, 3]);
  letGo();
  await eventually('them to be gone', async () => (await runtime.list()).length === 0);
  runtime.failNext('remove', new Error('busy'));
  expect(await judge()).toBe(1);
  await judge();
  await eventually('both to be gone', async () => (await runtime.list()).length === 0);
});

it('what a crash has left of it is removed', async () => {
  const { runtime, canary } = lone();
  await runtime.create('left', 1, specOf('image:1'));
  await canary.prepare();
  expect(await runtime.list()).toEqual([]);
});
