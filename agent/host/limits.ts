import { readFile } from 'node:fs/promises';

const WANTED_OPEN_FILES = 65_536;

/** How many open files a container may have: not more than this host itself may grant. */
export async function openFilesLimit(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8');
  const hard = /^Max open files\s+\S+\s+(\d+)/m.exec(limits)?.[1];
  return Math.min(WANTED_OPEN_FILES, Number(hard ?? WANTED_OPEN_FILES));
}
