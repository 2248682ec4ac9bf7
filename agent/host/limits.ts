import { readFile } from 'node:fs/promises';

const WANTED_OPEN_FILES = 65_536;

/** Returns the limit of open files for a container: 65,536, or the hard limit of this host if that is lower. */
export async function openFilesLimit(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8');
  const hard = /^Max open files\s+\S+\s+(\d+)/m.exec(limits)?.[1];
  return Math.min(WANTED_OPEN_FILES, Number(hard ?? WANTED_OPEN_FILES));
}
