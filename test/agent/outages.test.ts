import { afterEach, beforeEach, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { TestHost, provision } from './host.js';

let host: TestHost;
beforeEach(async () => {
  host = new TestHost();
  await host.provisioned({ gpuUuids: [] });
  host.dockerStartedAt = 1;
});
afterEach(() => host.close());

async function isInterrupted(instanceId: string): Promise<boolean> {
  const workload = await host.runtime.find(instanceId);
  return workload.state === 'stopped' && host.outages.wasInterrupted(workload);
}

it('a run that is marked as interrupted stays so when another one is', async () => {
  const other = await provision(host, 1, { gpuUuids: [] }, 'j');
  host.executor.receive(other);
  await host.answered(other, 'DONE');
  await host.outages.look();
  host.clock.advance(MINUTE_MS);
  host.runtime.exit('i', 137);
  host.dockerStartedAt = host.clock.now();
  await host.outages.look();
  // The first one is not back yet, and went down too long before for this.
  host.clock.advance(10 * MINUTE_MS);
  await host.outages.look();
  host.runtime.exit('j', 137);
  host.dockerStartedAt = host.clock.now();
  await host.outages.look();
  expect([await isInterrupted('i'), await isInterrupted('j')]).toEqual([true, true]);
});

it('what ended by itself long before Docker went away is not taken to have gone down with it, also by the agent after that', async () => {
  await host.outages.look();
  host.clock.advance(MINUTE_MS);
  host.runtime.exit('i', 0);
  host.clock.advance(10 * MINUTE_MS);
  await host.outages.look();
  host.restart();
  host.clock.advance(MINUTE_MS);
  host.dockerStartedAt = host.clock.now();
  await host.outages.look();
  expect(await isInterrupted('i')).toBe(false);
});
