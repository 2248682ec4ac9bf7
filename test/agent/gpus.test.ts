import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestHost, destroy, provision, start, stop } from './host.js';

const PROCESS = { pid: 4021, name: 'python' };

let host: TestHost;
let gpu: string;
beforeEach(async () => {
  host = new TestHost();
  gpu = (await host.gpus.inventory()).gpus[0]?.uuid ?? '';
});
afterEach(() => host.close());

async function deploy() {
  await host.provisioned();
}

describe('A GPU', () => {
  it('is not given to a second workload while the first is being made', async () => {
    const [first, second] = [await provision(host, 1, {}, 'a'), await provision(host, 1, {}, 'b')];
    host.executor.receive(first);
    host.executor.receive(second);
    await host.executor.idle();
    const outcomes = [first, second].map((command) => host.outcomes(command).at(-1)).sort();
    expect(outcomes).toEqual(['DONE', 'FAILED']);
    expect(host.results.find(({ code }) => code !== '')?.code).toBe('GPUS_UNAVAILABLE');
    expect([...(await host.runtime.list())]).toHaveLength(1);
  });

  it('is not given to a second workload while a call of Docker for the first one may still land', async () => {
    const answer = host.runtime.leaveUnanswered('first');
    const late = host.gpuAccess.acquire('first', [gpu], () =>
      Promise.reject(new Error('Docker did not answer in time')),
    );
    await expect(late).rejects.toThrow('in time');
    const give = () => host.gpuAccess.acquire('second', [gpu], async () => {});
    await expect(give()).rejects.toThrow('is being given to another workload');
    answer();
    await eventually('the GPU', () =>
      give().then(
        () => true,
        () => false,
      ),
    );
  });

  it('that something else on the host computes on is not given, and the renter is told what it is', async () => {
    await deploy();
    host.executor.receive(stop(2));
    await host.executor.idle();
    host.gpus.processes.set(gpu, [PROCESS]);
    const again = await start(host, 3);
    host.executor.receive(again);
    const refused = await host.answeredInTime(again, 'REFUSED');
    expect(refused).toMatchObject({ code: 'GPUS_UNAVAILABLE' });
    expect(refused.message).toMatch(/process 4021 \(python\)/);
    host.gpus.processes.clear();
    const later = await start(host, 4);
    host.executor.receive(later);
    await host.answered(later, 'DONE');
  });

  it.each([
    ['a release', () => stop(2, true)],
    ['a destroy', () => destroy(2)],
  ])('is not said to be free by %s while anything computes on it', async (_, make) => {
    await deploy();
    host.gpus.processes.set(gpu, [PROCESS]);
    const command = make();
    host.executor.receive(command);
    await eventually('the workload to be down', async () => (await host.runtime.find('i')).state !== 'running');
    for (let i = 0; i < 30; i++) {
      host.clock.advance(1_000);
      await Promise.resolve();
    }
    expect(host.outcomes(command)).toEqual([]);
    host.gpus.processes.clear();
    await host.answeredInTime(command, 'DONE');
  });

  it('stays with a workload that is stopped and not released, whatever computes on it', async () => {
    await deploy();
    host.gpus.processes.set(gpu, [PROCESS]);
    const command = stop(2);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
  });

  it('that another workload has by now holds up no destroy of the one that had it before', async () => {
    await deploy();
    host.runtime.exit('i', 1);
    host.watch();
    await advanceUntil('its end to be told', { clock: host.clock, stepMs: 500 }, () => host.reports.length > 0);
    const other = await provision(host, 1, {}, 'other');
    host.executor.receive(other);
    await host.answered(other, 'DONE');
    host.gpus.processes.set(gpu, [PROCESS]);
    const command = destroy(2);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
  });
});

describe('A GPU of a virtual machine', () => {
  const machine = (instanceId: string) => provision(host, 1, { virtualMachine: true }, instanceId);

  it('that has ended by itself is taken back, and not from the next one that has it', async () => {
    host.executor.receive(await machine('i'));
    await host.executor.idle();
    host.gpus.taken.add(gpu);
    const watcher = host.watch();
    await watcher.compare();
    await host.executor.idle();
    expect([...host.gpus.taken]).toEqual([gpu]);

    host.runtime.exit('i', 1);
    await advanceUntil('the host to have it', { clock: host.clock, stepMs: 10_000 }, () => host.gpus.taken.size === 0);
    host.executor.receive(await machine('other'));
    await host.executor.idle();
    host.gpus.taken.add(gpu);
    await watcher.compare();
    await host.executor.idle();
    expect([...host.gpus.taken]).toEqual([gpu]);
  });

  it('that is not back with the host holds a destroy up until it is', async () => {
    host.executor.receive(await machine('i'));
    await host.executor.idle();
    host.gpus.taken.add(gpu);
    host.gpus.stuck = true;
    const command = destroy(2);
    host.executor.receive(command);
    await eventually('it to be removed', async () => (await host.runtime.find('i')).state === 'absent');
    for (let i = 0; i < 30; i++) {
      host.clock.advance(1_000);
      await Promise.resolve();
    }
    expect(host.outcomes(command)).toEqual([]);
    host.gpus.stuck = false;
    await host.answeredInTime(command, 'DONE');
    expect(host.gpus.taken.size).toBe(0);
  });
});

describe('A virtual machine', () => {
  it('whose SSH does not answer runs five minutes after it was powered on', async () => {
    host.runtime.sshUp = false;
    const command = await provision(host, 1, { virtualMachine: true });
    host.executor.receive(command);
    await host.answered(command, 'ACCEPTED');
    const began = host.clock.monotonic();
    await host.answeredInTime(command, 'DONE');
    const passed = host.clock.monotonic() - began;
    expect(passed).toBeGreaterThanOrEqual(5 * 60_000);
    expect(passed).toBeLessThan(5 * 60_000 + 30_000);
  });
});
