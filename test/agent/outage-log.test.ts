import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Failure } from '../../agent/domain/failure.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { specOf } from '../suites/runtime-suite.js';
import { AssembledHost } from './assembled-host.js';
import { TestHost, destroy, provision, stop } from './host.js';

const INSTANCES = 5;
const MINUTES = 10;

interface Line {
  level: number;
  msg: string;
  reason?: string;
}

let host: AssembledHost;
const lines: Line[] = [];

beforeEach(() => {
  lines.length = 0;
  host = new AssembledHost();
  host.logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) });
});
afterEach(() => host.close());

const away = () => Promise.reject(new Failure('DOCKER_UNREACHABLE', 'Docker does not answer on this host'));

async function pass(minutes: number): Promise<void> {
  for (let second = 0; second < minutes * 60; second += 5) {
    host.clock.advance(5_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

it('while Docker is down, however much waits for it, a line a minute says so', async () => {
  const ids = Array.from({ length: INSTANCES }, (_, index) => `instance-${index}`);
  for (const instanceId of ids) {
    await host.runtime.create(instanceId, 1, specOf('image:1'));
    host.journal.remember({ instanceId, sequence: 1, desired: 'running' });
  }
  await host.start();
  await eventually('the first heartbeat', () => host.beats.length > 0);
  host.dockerAnswers = async () => false;
  for (const name of ['list', 'find', 'stop', 'remove'] as const) host.runtime[name] = away;
  for (const instanceId of ids) {
    const value = { ...stop(2), instanceId, commandId: `stop ${instanceId}` };
    host.send({ $case: 'command', value });
  }
  await eventually('a line', () => lines.some(({ msg }) => msg.includes('Docker')));
  lines.length = 0;
  await pass(MINUTES);
  // That stops are tried still, and that they fail.
  expect(lines.length).toBeGreaterThanOrEqual(MINUTES);
  expect(lines.length).toBeLessThanOrEqual(2 * MINUTES + 2);
  expect(lines.some(({ msg }) => /\(and \d+ times more/.test(msg))).toBe(true);
});

it('while the control plane is away, a line a minute says so', async () => {
  await host.start();
  await eventually('the first heartbeat', () => host.beats.length > 0);
  lines.length = 0;
  host.isAway = true;
  host.cut();
  await pass(MINUTES);
  const told = lines.filter(({ msg }) => msg.startsWith('not connected'));
  expect(told[0]?.reason).toBe('the control plane has ended the stream');
  expect(told.length).toBeGreaterThanOrEqual(MINUTES - 2);
  expect(lines.length).toBeLessThanOrEqual(MINUTES + 3);
});

it.each([
  ['a stop', () => stop(2)],
  ['a destroy', () => destroy(2)],
  ['a start', undefined],
])('a renter is told at once what %s waits for', async (_, make) => {
  const small = new TestHost();
  const first = await provision(small, 1);
  small.executor.receive(first);
  await small.answered(first, 'DONE');
  const command = make ? make() : await provision(small, 2);
  small.runtime.find = away;
  small.executor.receive(command);
  const told = await eventually('the event', () => small.progress.find(({ kind }) => kind === 'waiting'));
  expect(told.message).toBe('it waits for Docker of the host: Docker does not answer on this host');
  small.clock.advance(1_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(small.progress.filter(({ kind }) => kind === 'waiting')).toHaveLength(1);
  small.runtime.find = FakeRuntime.prototype.find.bind(small.runtime);
  await small.answeredInTime(command, 'DONE');
  await small.close();
});
