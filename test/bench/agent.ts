import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { BareDocker } from './bare-docker.js';
import type { Benchmark } from './benchmark.js';
import { MeasuredAgent } from './measured-agent.js';

const ROUNDS = 10;
/** After a deploy the agent makes a network for the next one; nothing is measured meanwhile. */
const REFILL_MS = 2_000;

/** Deploys, starts and destroys one workload by the agent and by bare calls to Docker, in alternating rounds. */
export const agent: Benchmark = async () => {
  const measured = await MeasuredAgent.start();
  let bare: BareDocker | undefined;
  const times = new Map<string, number[]>();
  const time = async (what: string, work: () => Promise<void>) => {
    const began = performance.now();
    await work();
    times.set(what, [...(times.get(what) ?? []), performance.now() - began]);
  };
  try {
    const model = randomUUID();
    await measured.bringUp(model, true);
    bare = await BareDocker.like(model);
    await measured.destroy(model);
    for (let round = 0; round < ROUNDS; round++) {
      const id = randomUUID();
      await time('deploy', () => measured.bringUp(id, true));
      await pause(REFILL_MS);
      await measured.stopWorkload(id);
      await time('start', () => measured.bringUp(id, false));
      await time('destroy', () => measured.destroy(id));
      const { deploy, stop, start, destroy } = boundTo(bare);
      await time('bare deploy', deploy);
      await stop();
      await time('bare start', start);
      await time('bare destroy', destroy);
    }
  } finally {
    await bare?.tidy();
    await measured.stop();
  }
  return Object.fromEntries(
    ['deploy', 'start', 'destroy'].flatMap((what) => {
      const [own, least] = [median(times.get(what)), median(times.get(`bare ${what}`))];
      return [
        [`${what}_ms`, Math.round(own)],
        [`${what}_bare_ms`, Math.round(least)],
        [`${what}_ratio`, Math.round((own / least) * 100) / 100],
      ];
    }),
  );
};

function boundTo(bare: BareDocker) {
  return {
    deploy: () => bare.deploy(),
    stop: () => bare.stop(),
    start: () => bare.start(),
    destroy: () => bare.destroy(),
  };
}

function median(values: readonly number[] = []): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
