import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Outbox } from '../../agent/link/outbox.js';
import { LogStreams } from '../../agent/logs/log-streams.js';
import type { LogLine, Runtime } from '../../agent/runtime/workload.js';
import { SIZED_SERVICE, unitsOf } from '../../control-plane/grpc/message-size.js';
import { MessageRateLimiter } from '../../control-plane/services/connections/message-rate-limiter.js';
import { AgentMessage, type LogChunk } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';

/** Long enough that what may come in a burst plays no part. */
const SECONDS = 120;
/** Batches of a workload; more than these seconds let through. */
const MOST = 300_000;

/** What the control plane counts for a message. */
function unitsOnTheWire(logChunk: LogChunk): number {
  const bytes = AgentMessage.encode({ message: { $case: 'logChunk', value: logChunk } }).finish();
  return unitsOf(SIZED_SERVICE.connect.requestDeserialize(Buffer.from(bytes)));
}

it.each<[string, number, number, (at: string) => LogLine[]]>([
  ['one short line after the other', 1, 500, (at) => [{ at, text: '' }]],
  ['one short line after the other, to many who watch', 50, 900, (at) => [{ at, text: '' }]],
  ['long lines', 3, 5, (at) => Array.from({ length: 100 }, () => ({ at, text: 'x'.repeat(16_000) }))],
  ['long lines of wide letters', 3, 5, (at) => Array.from({ length: 100 }, () => ({ at, text: '語'.repeat(5_000) }))],
])('a workload that writes without end has no host cut off: %s', async (_, watchers, aSecond, batch) => {
  const clock = new ManualClock();
  const intake = new MessageRateLimiter();
  let [sent, refused] = [0, 0];
  const outbox = {
    logChunk: (chunk: LogChunk) => {
      sent++;
      if (!intake.allows('logs', unitsOnTheWire(chunk), clock.monotonic())) refused++;
      return true;
    },
  };
  const runtime = {
    tail: async () => [],
    async *follow(_id: string, _since: string, signal: AbortSignal) {
      for (let at = 1; at <= MOST && !signal.aborted; at++)
        yield batch(`2025-01-01T00:00:00.${String(at).padStart(9, '0')}Z`);
    },
  };
  const streams = new LogStreams(runtime as unknown as Runtime, outbox as unknown as Outbox, clock, silentLogger);
  for (let index = 0; index < watchers; index++)
    streams.subscribe({ subscriptionId: `${index}`, instanceId: `${index}`, tail: 1, since: '' });
  for (let ms = 0; ms < SECONDS * 1_000; ms += 100) {
    clock.advance(100);
    for (let turn = 0; turn < 5; turn++) await setImmediate();
  }
  streams.stopAll();
  expect(refused).toBe(0);
  // And it is not held up for nothing.
  expect(sent).toBeGreaterThan(aSecond * SECONDS);
});
