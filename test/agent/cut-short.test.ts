import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { WorkloadState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { TestHost, start, stop } from './host.js';

let host: TestHost;
beforeEach(async () => {
  host = new TestHost();
  await host.provisioned();
});
afterEach(() => host.close());

it('what was cut short and is still to be sent again is not forgotten', async () => {
  host.journal.begin({ ...stop(2), commandId: 'cut short' }, 'stopped');
  host.restart();
  host.executor.raiseFloor({ instanceId: 'i', sequence: 2, reportNumber: 0, running: true, commandOpen: true });
  expect(host.journal.isUnfinished('i')).toBe(true);
  expect(host.journal.instance('i')?.desired).toBe('stopped');
});

it('a crash while a failed start is undone leaves a start that is sent again to be carried out, and not taken for ended', async () => {
  const halt = stop(2);
  host.executor.receive(halt);
  await host.answered(halt, 'DONE');
  host.clock.advance(1_000);
  vi.spyOn(host.guardedPorts, 'note').mockRejectedValueOnce(new Error('a failure after the start'));
  const again = await start(host, 3);
  host.runtime.hold('stop');
  host.executor.receive(again);
  await eventually('the undoing', () => host.runtime.calls.filter((call) => call === 'stop i').length === 2);
  // The signal is out, and the agent dies before it hears of the end.
  host.runtime.exit('i', 143);
  host.restart();
  host.runtime.letGo('stop');
  host.executor.receive(again);
  const { observation } = await host.answeredInTime(again, 'DONE');
  expect(observation?.state).toBe(WorkloadState.WORKLOAD_STATE_RUNNING);
});
