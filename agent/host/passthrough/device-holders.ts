import { readFile, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Returns the ids of processes that have the GPU of one of these slots open, because the agent must not take a GPU that is in use.
 * Throws if it cannot find out.
 */
export async function holdersOf(slots: readonly string[], proc = '/proc'): Promise<number[]> {
  const paths = await Promise.all(slots.map((slot) => deviceOf(slot, proc)));
  const pids = (await readdir(proc)).map(Number).filter((pid) => pid > 0);
  const holds = async (pid: number) => {
    const folder = join(proc, String(pid), 'fd');
    const files = await readdir(folder).catch(nothingIfGone);
    const targets = await Promise.all(files.map((file) => readlink(join(folder, file)).catch(() => '')));
    return targets.some((target) => paths.includes(target));
  };
  const found = await Promise.all(pids.map(async (pid) => ((await holds(pid)) ? [pid] : [])));
  return found.flat();
}

/** Returns no files for a process that has ended. Throws for one that cannot be read, because it can hold the GPU. */
function nothingIfGone(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT' || error.code === 'ESRCH') return [];
  throw error;
}

/** Returns the device file that the driver gives for the GPU of a slot. Throws if it gives none. */
async function deviceOf(slot: string, proc: string): Promise<string> {
  const text = await readFile(join(proc, 'driver/nvidia/gpus', `${slot}.0`, 'information'), 'utf8').catch(() => '');
  const minor = /^Device Minor:\s*(\d+)/m.exec(text)?.[1];
  if (minor === undefined) throw new Error(`the driver does not say which device the GPU at ${slot} is`);
  return `/dev/nvidia${minor}`;
}
