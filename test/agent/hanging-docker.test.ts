import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { WholeAgent } from './whole-agent.js';

/** After which the control plane takes a silent host for gone. */
const LIVENESS_MS = 30_000;

let host: WholeAgent;

beforeEach(async () => {
  host = new WholeAgent();
  await host.start();
  await eventually('the first heartbeat', () => host.beats.length > 0);
});
afterEach(async () => {
  host.runtime.letGo('list');
  await host.close();
});

it('a Docker that hangs does not keep the host from being heard, and is told of', async () => {
  const { beats, clock, runtime } = host;
  expect(beats[0]?.heartbeat.dockerAvailable).toBe(true);
  const answer = runtime.hold('list');
  host.diskFreeGb = () => new Promise(() => {});
  const from = beats.length;
  await eventually('some heartbeats', () => {
    clock.advance(500);
    return beats.length > from + 4;
  });
  const heard = beats.slice(from + 1);
  expect(heard.map(({ heartbeat }) => heartbeat.dockerAvailable)).not.toContain(true);
  const gaps = heard.slice(1).map(({ at }, index) => at - (heard[index]?.at ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(LIVENESS_MS / 2);
  answer();
  host.diskFreeGb = async () => 100;
  await eventually('Docker to be back', () => {
    clock.advance(500);
    return beats.at(-1)?.heartbeat.dockerAvailable;
  });
});
