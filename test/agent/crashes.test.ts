import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import type { Command } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { specOf } from '../suites/runtime-suite.js';
import { TestHost, destroy, provision, start, stop } from './host.js';

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.close());

const crashesOf = ({ commandId }: Command) => {
  const known = host.journal.command(commandId);
  return known?.state === 'begun' ? known.crashes : undefined;
};

/** The agent takes the command up, and its process ends in the middle of it. */
async function crashOver(...commands: Command[]): Promise<void> {
  host.runtime.hold('find');
  for (const command of commands) {
    host.executor.receive(command);
    const underWay = () => host.journal.isUnderWay(command.commandId);
    // One after another where the agent has crashed over them before.
    if ((crashesOf(command) ?? 0) === 0) await eventually('the attempt', underWay);
  }
  await eventually('an attempt', () => commands.some(({ commandId }) => host.journal.isUnderWay(commandId)));
  host.restart();
  host.runtime.letGo('find');
}

describe('a command in the middle of which the agent has crashed', () => {
  it('once is carried out when it is sent again', async () => {
    const command = await provision(host, 1);
    await crashOver(command);
    expect(crashesOf(command)).toBe(1);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
  });

  it('twice fails with a reason, and leaves nothing', async () => {
    const command = await provision(host, 1);
    await crashOver(command);
    await crashOver(command);
    host.executor.receive(command);
    const failed = await host.answered(command, 'FAILED');
    expect(failed).toMatchObject({ code: 'AGENT_CRASHED', message: expect.stringMatching(/ended twice/) as string });
    expect(await host.runtime.find('i')).toEqual({ state: 'absent' });
  });

  it('twice leaves nothing of what was made and never started either', async () => {
    const command = await provision(host, 1);
    await crashOver(command);
    await crashOver(command);
    await host.runtime.create('i', 1, specOf('image:1'));
    host.runtime.unstart('i');
    host.executor.receive(command);
    await host.answered(command, 'FAILED');
    expect(await host.runtime.list()).toEqual([]);
  });

  it('twice as a start leaves the workload stopped, with its disk', async () => {
    await host.provisioned();
    const halt = stop(2);
    host.executor.receive(halt);
    await host.answered(halt, 'DONE');
    const command = await start(host, 3);
    await crashOver(command);
    await crashOver(command);
    host.executor.receive(command);
    await host.answered(command, 'FAILED');
    expect((await host.runtime.find('i')).state).toBe('stopped');
  });

  it.each([
    ['stop', () => stop(2), 'stopped', 'stop'],
    ['destroy', () => destroy(2), 'absent', 'remove'],
  ] as const)('twice as a %s is carried out in a process of its own', async (_, make, state, operation) => {
    await host.provisioned();
    const command = make();
    await crashOver(command);
    expect(host.inIsolation).toEqual([]);
    await crashOver(command);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    expect(host.inIsolation).toEqual([operation]);
    expect((await host.runtime.find('i')).state).toBe(state);
  });

  it('has nothing else that was under way then beside it, so that its neighbour is not taken for the cause', async () => {
    const [one, other] = [await provision(host, 1, {}, 'a'), await provision(host, 1, { gpuUuids: [] }, 'b')];
    await crashOver(one, other);
    expect([one, other].map(crashesOf)).toEqual([1, 1]);
    await crashOver(one, other);
    expect([one, other].map(crashesOf).sort()).toEqual([1, 2]);
    for (const command of [one, other]) host.executor.receive(command);
    await eventually('both answers', () => {
      const outcomes = [one, other].map((command) => host.outcomes(command).at(-1));
      return outcomes.includes('DONE') && outcomes.includes('FAILED');
    });
  });
});

it('an agent that is stopped, and a host that goes down, count for no command', async () => {
  const command = await provision(host, 1);
  for (let time = 0; time < 3; time++) {
    host.runtime.hold('find');
    host.executor.receive(command);
    await eventually('the attempt', () => host.journal.isUnderWay(command.commandId));
    void host.executor.stop();
    host.restart();
  }
  expect(crashesOf(command)).toBe(0);
  host.journal.beginAttempt(command.commandId);
  host.journal.countCrashes(true);
  expect(crashesOf(command)).toBe(0);
  host.runtime.letGo('find');
  host.executor.receive(command);
  await host.answered(command, 'DONE');
});
