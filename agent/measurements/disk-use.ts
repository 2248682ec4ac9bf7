import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import { parseQuotaGroup } from '../domain/kernel-files.js';
import type { LocatedWorkload } from '../runtime/workload.js';

const run = promisify(execFile);
const TIMEOUT_MS = 10_000;
const GB = 1e9;
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

async function ofSubvolume(path: string): Promise<DiskUse | null> {
  const { stdout } = await run('btrfs', ['qgroup', 'show', '--raw', '-r', '-f', path], { timeout: TIMEOUT_MS });
  const group = parseQuotaGroup(stdout);
  return group?.limitBytes === undefined || group.limitBytes === null
    ? null
    : { usedBytes: group.usedBytes, limitBytes: group.limitBytes };
}
