import { afterEach, beforeEach, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { Failure } from '../../agent/domain/failure.js';
import type { GpuTestResult } from '../../agent/domain/gpu-verdict.js';
import { GpuTest } from '../../agent/gpu-test/gpu-test.js';
import { eventually } from '../../scripts/eventually.js';
import { silentLogger } from '../../shared/logger.js';
import { advanceUntil, eventLoop } from '../harness/advance-until.js';
import { TestHost, destroy, provision, stop } from './host.js';

const REFUSED: GpuTestResult = { kind: 'failed', reason: 'the hook refuses' };
const WELL: GpuTestResult = { kind: 'passed', reason: '' };

let host: TestHost;
let gpuTest: GpuTest;
/** What a test container shows. */
let shows: GpuTestResult;
let mark: string;
/** The GPU of each test, and when it was made. */
let tested: { uuid: string; at: number }[];
let stored: string | undefined;
/** Keeps a test from ending. */
let held: Promise<void>;
beforeEach(() => {
  host = new TestHost();
  [shows, mark, tested, stored, held] = [WELL, 'as it was', [], undefined, Promise.resolve()];
  gpuTest = make();
});
afterEach(async () => {
  gpuTest.stop();
  await host.close();
});

function make(): GpuTest {
  const run = async (uuid: string) => {
    tested.push({ uuid, at: host.clock.monotonic() });
    await held;
    return shows;
  };
  const storage = { read: () => stored, write: (text: string) => void (stored = text) };
  const starter = { run, prune: async () => undefined, mark: async () => mark };
  return new GpuTest(starter, (work) => host.gpuAccess.borrow(work), storage, host.clock, silentLogger);
}

const uuids = async () => (await host.gpus.inventory()).gpus.map(({ uuid }) => uuid);

/** Lets time pass in steps in which tests come to their end. */
async function pass(ms: number, stepMs = 10_000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    host.clock.advance(stepMs);
    await eventLoop();
  }
}

it('a host is tested at its start, after a change, and after a start that failed, and at no other time', async () => {
  gpuTest.start();
  await pass(MINUTE_MS);
  expect(tested).toHaveLength(1);
  await gpuTest.lookForChange();
  await pass(3 * 60 * MINUTE_MS, MINUTE_MS);
  await gpuTest.lookForChange();
  expect(tested).toHaveLength(1);
  mark = 'another toolkit';
  await gpuTest.lookForChange();
  await pass(MINUTE_MS);
  expect(tested).toHaveLength(2);
  // As many starts as a renter likes cause one test a minute.
  const before = host.clock.monotonic();
  for (let start = 0; start < 60; start++) {
    gpuTest.noteFailedStart();
    await pass(3_000, 1_000);
  }
  expect(tested.length - 2).toBeLessThanOrEqual((host.clock.monotonic() - before) / MINUTE_MS + 1);
  expect(tested.length).toBeGreaterThan(3);
  expect(gpuTest.obstacle).toBe('');
});

it('two failures a minute apart keep new work away, also after a restart of the agent, until two tests pass', async () => {
  shows = REFUSED;
  gpuTest.noteFailedStart();
  await pass(10_000);
  expect([tested.length, gpuTest.obstacle]).toEqual([1, '']);
  await pass(MINUTE_MS);
  expect([tested.length, gpuTest.obstacle]).toEqual([
    2,
    'no container with a GPU starts on this host: the hook refuses',
  ]);
  gpuTest.stop();
  gpuTest = make();
  expect(gpuTest.obstacle).toContain('the hook refuses');
  shows = WELL;
  gpuTest.start();
  await pass(10_000);
  expect(gpuTest.obstacle).toContain('the hook refuses');
  await pass(MINUTE_MS);
  expect([tested.length, gpuTest.obstacle]).toEqual([4, '']);
  await pass(3 * 60 * MINUTE_MS, MINUTE_MS);
  expect(tested).toHaveLength(4);
});

it('without a free GPU nothing is tested, and nothing changes', async () => {
  shows = REFUSED;
  const [first = '', second = ''] = await uuids();
  await host.provisioned({ gpuUuids: [first] });
  host.gpus.taken.add(second);
  expect(await gpuTest.test()).toEqual({ kind: 'not tested', reason: 'no GPU is free' });
  host.gpus.taken.clear();
  host.gpus.processes.set(second, [{ pid: 1, name: 'python' }]);
  expect(await gpuTest.test()).toMatchObject({ kind: 'not tested' });
  host.gpus.processes.clear();
  await gpuTest.test();
  expect(tested.map(({ uuid }) => uuid)).toEqual([second]);
  host.gpus.taken.add(second);
  await gpuTest.test();
  expect(tested).toHaveLength(1);
  expect(gpuTest.obstacle).toBe('');
});

it('a stopped instance keeps its GPU from tests until the host has released it', async () => {
  const [first = '', second = ''] = await uuids();
  host.gpus.taken.add(second);
  await host.provisioned({ gpuUuids: [first] });
  for (const [releases, sequence] of [
    [false, 2],
    [true, 3],
  ] as const) {
    const command = stop(sequence, releases);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    expect((await gpuTest.test()).kind).toBe(releases ? 'passed' : 'not tested');
  }
  expect(tested.map(({ uuid }) => uuid)).toEqual([first]);
  const gone = destroy(4);
  host.executor.receive(gone);
  await host.answered(gone, 'DONE');
});

it('there is one test at a time, and a deploy waits until it is over, but no longer than 20 seconds', async () => {
  const [first = '', second = ''] = await uuids();
  let end = () => {};
  held = new Promise((resolve) => (end = resolve));
  const both = [gpuTest.test(), gpuTest.test()];
  await eventually('the test', () => tested.length === 1);
  expect(tested[0]?.uuid).toBe(first);
  const other = await provision(host, 1, { gpuUuids: [second] }, 'other');
  host.executor.receive(other);
  await host.answered(other, 'DONE');
  const began = host.clock.monotonic();
  const same = await provision(host, 1, { gpuUuids: [first] });
  host.executor.receive(same);
  await eventLoop();
  expect(host.outcomes(same)).not.toContain('DONE');
  await advanceUntil('the deploy', { clock: host.clock, stepMs: 1_000 }, () => host.outcomes(same).includes('DONE'));
  expect(host.clock.monotonic() - began).toBeLessThanOrEqual(21_000);
  end();
  expect(await Promise.all(both)).toEqual([WELL, WELL]);
  expect(tested).toHaveLength(1);
});

it('a start that Docker refuses asks for a test, where it is of a container with GPUs', async () => {
  const refused = new Failure('CONTAINER_FAILED', 'the container could not be started: no such file');
  const cases = [
    [{ gpuUuids: [] as string[] }, refused, 0],
    [{}, new Failure('PORT_TAKEN', 'a port is taken'), 0],
    [{}, refused, 1],
  ] as const;
  for (const [index, [fields, error, asked]] of cases.entries()) {
    host.runtime.failNext('create', error);
    const command = await provision(host, 1, fields, `i${index}`);
    host.executor.receive(command);
    await host.answered(command, 'FAILED');
    expect(host.gpuTestsAsked).toBe(asked);
  }
});
