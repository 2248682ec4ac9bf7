import { execFile } from 'node:child_process';
import { access, readFile, readdir, realpath, statfs } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { btrfsDevice } from '../domain/kernel-files.js';
import type { LocatedWorkload } from '../runtime/workload.js';

const run = promisify(execFile);
const TIMEOUT_MS = 10_000;
const GB = 1e9;
const BTRFS = '/sys/fs/btrfs';
/** A virtual machine's limit is a little above what was rented, for its tables. */
const MOST_BEYOND_RENTED = 1.1;

export interface DiskUse {
  usedBytes: number;
  limitBytes: number;
}

/**
 * Returns what a workload has written to its disk, from the account that the file system keeps for its quota; null if it keeps none.
 * Nothing looks at the files themselves. With btrfs the image counts, too, because it counts for the quota.
 */
export async function diskUseOf({ disk, workload }: LocatedWorkload): Promise<DiskUse | null> {
  if (disk === null) return null;
  const rentedBytes = workload.diskGb * GB;
  const found = await (disk.driver === 'overlay2' ? ofProject(disk.path) : ofSubvolume(disk.path)).catch(() => null);
  // Without a quota, a file system shows its own size.
  const isItsQuota = found !== null && Math.abs(found.limitBytes / rentedBytes - 1) < MOST_BEYOND_RENTED - 1;
  return isItsQuota ? { usedBytes: found.usedBytes, limitBytes: rentedBytes } : null;
}

/** XFS and ext4 show a folder with a project quota as a file system of its own, of the size of the quota. */
async function ofProject(path: string): Promise<DiskUse> {
  const { blocks, bfree, bsize } = await statfs(path);
  return { usedBytes: (blocks - bfree) * bsize, limitBytes: blocks * bsize };
}

/**
 * Reads the account of a subvolume where the kernel shows it, since Linux 5.9. `btrfs qgroup show` would need CAP_SYS_ADMIN, with which the
 * agent could mount and change anything.
 */
async function ofSubvolume(path: string): Promise<DiskUse | null> {
  const [{ stdout: id }, system] = await Promise.all([
    run('btrfs', ['inspect-internal', 'rootid', path], { timeout: TIMEOUT_MS }),
    fileSystemOf(path),
  ]);
  if (system === undefined) return null;
  const read = async (name: string) => Number(await readFile(join(system, 'qgroups', `0_${Number(id)}`, name), 'utf8'));
  const [usedBytes, limitBytes] = await Promise.all([read('referenced'), read('max_referenced')]);
  return { usedBytes, limitBytes };
}

/** Returns the folder in which the kernel shows the btrfs that contains a path. */
async function fileSystemOf(path: string): Promise<string | undefined> {
  const device = btrfsDevice(await readFile('/proc/self/mountinfo', 'utf8'), path);
  if (device === undefined) return undefined;
  // A name such as /dev/mapper/data is a link to that of the kernel.
  const name = basename(await realpath(device));
  for (const uuid of await readdir(BTRFS)) {
    const isIts = await access(join(BTRFS, uuid, 'devices', name)).then(
      () => true,
      () => false,
    );
    if (isIts) return join(BTRFS, uuid);
  }
  return undefined;
}
