import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Outbox } from '../../agent/link/outbox.js';
import { LogStreams } from '../../agent/logs/log-streams.js';
import { eventually } from '../../scripts/eventually.js';
import { systemClock } from '../../shared/clock.js';
import type { LogChunk } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { SAMPLE_IMAGE } from '../harness/docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { specOf } from '../suites/runtime-suite.js';

const NOTES = 5;

it('a workload that writes without end is shown as it is now, with notes of what is left out', async () => {
  const id = randomUUID();
  const runtime = await makeRuntime({ ports: takePorts(5) });
  const ages: number[] = [];
  let notes = 0;
  const outbox = {
    logChunk: ({ lines }: LogChunk) => {
      const newest = lines.at(-1);
      if (newest) ages.push(Date.now() - Date.parse(newest.at));
      notes += lines.filter(({ text }) => text.startsWith('[gpurent: ')).length;
      return true;
    },
  };
  const streams = new LogStreams(runtime, outbox as unknown as Outbox, systemClock, silentLogger);
  const command = ['sh', '-c', `while :; do yes ${'x'.repeat(99)} | head -n 5000; sleep 0.03; done`];
  try {
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { command, cpuMillis: 1_000 }));
    streams.subscribe({ subscriptionId: 's', instanceId: id, tail: 1_000, since: '' });
    await eventually('the notes', () => notes >= NOTES);
    // A machine that stands still makes few chunks late, and not what comes after them.
    const sorted = ages.toSorted((one, other) => one - other);
    expect(sorted[Math.floor(sorted.length * 0.9)]).toBeLessThan(3_000);
  } finally {
    streams.stopAll();
    await runtime.remove(id);
  }
});
