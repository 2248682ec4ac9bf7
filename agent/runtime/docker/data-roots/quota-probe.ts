import { randomUUID } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { importEmptyImage } from '../images/empty-image.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from '../engine.js';

export const PROBE_IMAGES = 'gpurent/probe:';
const LIMIT_BYTES = 64 * 1024 * 1024;
const WRITE = (name: string, mib: number) => `dd if=/dev/zero of=/${name} bs=1M count=${mib}`;
/**
 * Succeeds only if a file within the limit can be written and one beyond it cannot. Any other result proves nothing.
 */
const SCRIPT = `${WRITE('small', 8)} || exit 3; ${WRITE('large', 256)} && exit 4; exit 0`;
/** With less space free, the disk itself would be full first. */
const LEAST_FREE_BYTES = 1024 * 1024 * 1024;

/**
 * Returns whether Docker's storage really enforces the size of a container's disk: some storage drivers refuse the
 * option, others accept it and do nothing. A temporary container tries to write more than its limit. Throws if the
 * probe is not possible.
 */
export async function probeDiskQuota(engine: Engine, guestTools: string): Promise<boolean> {
  const image = `${PROBE_IMAGES}${randomUUID()}`;
  const { DockerRootDir } = await engine.info();
  const { bavail, bsize } = await statfs(DockerRootDir);
  if (bavail * bsize < LEAST_FREE_BYTES) throw new Error(`${DockerRootDir} has less than 1 GiB free`);
  await importEmptyImage(engine, image);
  try {
    return await isHeld(engine, image, guestTools);
  } finally {
    await engine
      .call('remove an image', DEADLINE_MS.remove, (docker) => imageOf(docker, image).remove({ force: true }))
      .catch(() => undefined);
  }
}

async function isHeld(engine: Engine, Image: string, guestTools: string): Promise<boolean> {
  const container = await engine
    .call('create a container', DEADLINE_MS.create, (docker) =>
      docker.createContainer({
        Image,
        Entrypoint: ['/.gpurent/bin/sh', '-c', SCRIPT],
        HostConfig: {
          NetworkMode: 'none',
          CapDrop: ['ALL'],
          Mounts: [{ Type: 'bind', Source: guestTools, Target: '/.gpurent', ReadOnly: true }],
          StorageOpt: { size: String(LIMIT_BYTES) },
        },
      }),
    )
    .catch((error: unknown) => {
      // If Docker itself refuses the option, that is the result.
      if (statusOf(error) === undefined) throw error;
    });
  if (!container) return false;
  try {
    await engine.call('start a container', DEADLINE_MS.start, () => container.start());
    const { StatusCode } = (await engine.call('end a container', DEADLINE_MS.start, () => container.wait())) as {
      StatusCode: number;
    };
    return StatusCode === 0;
  } finally {
    await engine.call('remove a container', DEADLINE_MS.remove, () => container.remove({ force: true, v: true }));
  }
}
