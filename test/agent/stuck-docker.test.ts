import { afterEach, beforeEach, expect, it } from 'vitest';
import { advanceUntil } from '../harness/advance-until.js';
import { TestHost, destroy, provision, stop } from './host.js';

let host: TestHost;

beforeEach(async () => {
  host = new TestHost();
  const command = await provision(host, 1);
  host.executor.receive(command);
  await host.answered(command, 'DONE');
});
afterEach(() => host.close());

/** What is told while minutes pass. */
const told = (kind: string) =>
  advanceUntil(kind, { clock: host.clock, stepMs: 10_000 }, () => {
    return host.progress.find((progress) => progress.kind === kind);
  });

it.each([
  ['destroy_attempt', destroy],
  ['stop_attempt', stop],
])('a call that Docker never answers is told of, and what to do: %s', async (kind, make) => {
  await host.runtime.stop('i');
  const answer = host.runtime.leaveUnanswered('i');
  const command = make(2);
  host.executor.receive(command);
  const { message, gpusFree } = await told(kind);
  expect(message).toMatch(/does not start the container .* restart it \("systemctl restart docker"\)/);
  expect(gpusFree).toBe(false);
  answer();
  await host.answered(command, 'DONE');
});

it('the GPUs of a workload that is down are free, though Docker does not manage to remove it', async () => {
  await host.runtime.stop('i');
  const letGo = host.runtime.hold('remove');
  const command = destroy(2);
  host.executor.receive(command);
  expect(await told('destroy_attempt')).toMatchObject({
    gpusFree: true,
    message: expect.stringContaining('nothing of it is on its GPUs any more') as string,
  });
  letGo();
  await host.answeredInTime(command, 'DONE');
});

it('they are not free while it runs, or something computes on them', async () => {
  const letGo = host.runtime.hold('remove');
  const command = destroy(2);
  host.executor.receive(command);
  expect(await told('destroy_attempt')).toMatchObject({ gpusFree: false });
  await host.runtime.stop('i');
  const [gpu] = (await host.gpus.inventory()).gpus;
  host.gpus.processes.set(gpu?.uuid ?? '', [{ pid: 1, name: 'left over' }]);
  host.progress.length = 0;
  expect(await told('destroy_attempt')).toMatchObject({ gpusFree: false });
  host.gpus.processes.clear();
  letGo();
  await host.answeredInTime(command, 'DONE');
});
