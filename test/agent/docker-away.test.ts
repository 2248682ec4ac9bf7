import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EngineWatch } from '../../agent/runtime/docker/docker-watch.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { eventually } from '../../scripts/eventually.js';
import { DockerDouble } from '../harness/docker-double.js';
import { ManualClock } from '../harness/manual-clock.js';
import { AssembledHost } from './assembled-host.js';

describe('a Docker that hangs while its events are followed', () => {
  let folder: string;
  let docker: DockerDouble;
  let clock: ManualClock;
  let watch: EngineWatch;
  const stopping = new AbortController();
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gpurent-docker-away-'));
    docker = await DockerDouble.listen(join(folder, 'docker.sock'));
    clock = new ManualClock();
    watch = new EngineWatch(new Engine(docker.socket, clock), 'h', '/none', { confirm: async () => {} }, clock);
  });
  afterEach(() => {
    stopping.abort();
    docker.close();
    rmSync(folder, { recursive: true });
  });

  it('is noticed within eight seconds, though its stream of events stands', async () => {
    const broken = watch.events(() => {}, stopping.signal).catch((error: unknown) => (error as Error).message);
    const delays = vi.spyOn(clock, 'schedule').mock.calls;
    const toBeAskedAgain = () => eventually('it to be asked again later', () => delays.at(-1)?.[0] === 3_000);
    await toBeAskedAgain();
    // A Docker that answers is asked again and again.
    for (let count = 0; count < 3; count++) {
      clock.advance(3_000);
      await eventually('the question', () => delays.at(-1)?.[0] === 5_000);
      await toBeAskedAgain();
    }
    docker.isSilent = true;
    clock.advance(3_000);
    await eventually('it to be asked', () => docker.unanswered === 1);
    clock.advance(5_000);
    expect(await broken).toBe('Docker does not answer');
    expect(clock.waiting).toBe(0);
  });

  it('is not waited for when its events are to be followed', async () => {
    docker.isSilent = true;
    const broken = watch.events(() => {}, stopping.signal).catch((error: unknown) => (error as Error).message);
    await eventually('it to be asked', () => docker.unanswered === 1);
    clock.advance(5_000);
    expect(await broken).toBe('Docker does not answer');
  });
});

describe('a host whose Docker goes', () => {
  let host: AssembledHost;
  beforeEach(async () => {
    host = new AssembledHost();
    await host.start();
    await eventually('the first heartbeat', () => host.beats.length > 0);
  });
  afterEach(() => host.close());

  it('says so at once, and at once when it is back', async () => {
    const { beats, clock } = host;
    host.dockerAnswers = async () => false;
    host.breakEvents();
    await eventually('it to say so', () => beats.at(-1)?.heartbeat.dockerAvailable === false);
    expect(beats.at(-1)?.at).toBe(clock.monotonic());
    host.dockerAnswers = async () => true;
    clock.advance(1_000);
    await eventually('it to say so', () => beats.at(-1)?.heartbeat.dockerAvailable === true);
    expect(beats.at(-1)?.at).toBe(clock.monotonic());
    // And goes on at its pace.
    const { length } = beats;
    clock.advance(9_999);
    expect(beats).toHaveLength(length);
    clock.advance(1);
    await eventually('the next one', () => beats.length === length + 1);
  });

  it('says so also while another heartbeat waits for Docker, which is not sent any more', async () => {
    const { beats, clock } = host;
    const answer = host.runtime.hold('list');
    const from = beats.length;
    clock.advance(10_000);
    host.dockerAnswers = async () => false;
    host.breakEvents();
    await eventually('it to say so', () => beats.length > from);
    expect(beats.at(-1)).toMatchObject({ at: clock.monotonic(), heartbeat: { dockerAvailable: false } });
    answer();
    clock.advance(9_999);
    expect(beats).toHaveLength(from + 1);
    clock.advance(1);
    await eventually('the next one', () => beats.length === from + 2);
  });
});
