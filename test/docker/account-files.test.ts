import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import { eventually } from '../../scripts/eventually.js';
import { SAMPLE_IMAGE, containersOf, docker } from '../harness/docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { specOf } from '../suites/runtime-suite.js';

const ports = takePorts(5);
const REFUSAL = {
  code: 'CONTAINER_FAILED',
  message: expect.stringMatching(/no plain file of at most 1 MiB/) as string,
};

describe('what Docker opens in a container at its start', () => {
  const id = randomUUID();
  let runtime: DockerRuntime;

  beforeEach(async () => {
    runtime = await makeRuntime({ ports });
  });
  afterEach(() => runtime.remove(id));

  /** A workload has run that has left `script` behind. */
  async function after(script: string): Promise<void> {
    await runtime.create(
      id,
      1,
      specOf(SAMPLE_IMAGE, {
        command: ['sh', '-c', `mkdir -p /etc; ${script}`],
        interactive: false,
        sshAuthorizedKey: '',
      }),
    );
    await eventually('its end', async () => (await runtime.find(id)).state === 'stopped');
    expect(await runtime.find(id)).toMatchObject({ exitCode: 0 });
  }

  it.each([
    ['a pipe', 'rm -f /etc/passwd && mkfifo /etc/passwd'],
    ['a pipe in the place of the groups', 'rm -f /etc/group && mkfifo /etc/group'],
    ['a link to a pipe', 'mkfifo /pipe && ln -sf ../pipe /etc/passwd'],
    ['a file that is large', 'dd if=/dev/zero of=/etc/group bs=1M count=2'],
    ['a large file without contents', 'dd if=/dev/zero of=/etc/passwd bs=1 count=1 seek=2000000000'],
    ['a folder', 'rm -f /etc/passwd && mkdir /etc/passwd'],
  ])('%s is not opened, and the workload can be removed', async (_, script) => {
    await after(script);
    await expect(runtime.start(id)).rejects.toMatchObject(REFUSAL);
    expect(runtime.hasUnanswered(id)).toBe(false);
    await runtime.remove(id);
    expect(await containersOf(id)).toEqual([]);
  });

  it.each([
    ['plain files', 'echo root:x:0:0:root:/root:/bin/sh >/etc/passwd'],
    ['links to plain files', 'touch /passwd && ln -sf /passwd /etc/passwd'],
    ['nothing', 'rm -f /etc/passwd /etc/group'],
    ['links to nothing', 'ln -sf /nowhere /etc/passwd'],
  ])('%s are no obstacle', async (_, script) => {
    await after(script);
    await runtime.start(id);
    await eventually('a second run', async () => (await runtime.find(id)).state !== 'created');
  });

  it('a pipe that comes with the image is not opened either', async () => {
    await after('rm -f /etc/passwd && mkfifo /etc/passwd');
    await docker.getContainer(`gpurent-${id}`).commit({ repo: 'gpurent/test-pipe', tag: '1' });
    const another = randomUUID();
    await expect(runtime.create(another, 1, specOf('gpurent/test-pipe:1'))).rejects.toMatchObject(REFUSAL);
    expect(await containersOf(another)).toEqual([]);
  });
});
