import { Readable } from 'node:stream';
import { DEADLINE_MS, type Engine } from './engine.js';

const IMAGE = { repo: 'gpurent/probe', tag: '1' };
const LIMIT_BYTES = 64 * 1024 * 1024;
const WRITES_MIB = 256;
const WRITE = `dd if=/dev/zero of=/probe bs=1M count=${WRITES_MIB}`;
/** An archive without a file. */
const EMPTY_TAR = Buffer.alloc(1024);

/**
 * Whether Docker's storage really keeps a container to its size: some refuse the option, others take it and do nothing. A
 * throw-away container writes more than it may.
 */
export async function probeDiskQuota(engine: Engine, guestTools: string): Promise<boolean> {
  await importImage(engine);
  try {
    return await overflows(engine, guestTools);
  } finally {
    await engine.call('remove an image', DEADLINE_MS.remove, (docker) =>
      docker.getImage(`${IMAGE.repo}:${IMAGE.tag}`).remove({ force: true }),
    );
  }
}

async function importImage(engine: Engine): Promise<void> {
  await engine.call('import an image', DEADLINE_MS.create, async (docker) => {
    const done = await docker.importImage(Readable.from([EMPTY_TAR]), IMAGE);
    for await (const _ of done);
  });
}

/** Whether a container that writes more than it may is stopped from doing so. */
async function overflows(engine: Engine, guestTools: string): Promise<boolean> {
  const container = await engine
    .call('create a container', DEADLINE_MS.create, (docker) =>
      docker.createContainer({
        Image: `${IMAGE.repo}:${IMAGE.tag}`,
        Entrypoint: ['/.gpurent/bin/sh', '-c', WRITE],
        HostConfig: {
          NetworkMode: 'none',
          CapDrop: ['ALL'],
          Mounts: [{ Type: 'bind', Source: guestTools, Target: '/.gpurent', ReadOnly: true }],
          StorageOpt: { size: String(LIMIT_BYTES) },
        },
      }),
    )
    .catch(() => undefined);
  if (!container) return false;
  try {
    await engine.call('start a container', DEADLINE_MS.start, () => container.start());
    const { StatusCode } = (await engine.call('end a container', DEADLINE_MS.start, () => container.wait())) as {
      StatusCode: number;
    };
    return StatusCode !== 0;
  } finally {
    await engine.call('remove a container', DEADLINE_MS.remove, () => container.remove({ force: true, v: true }));
  }
}
