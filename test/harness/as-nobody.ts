import { chmodSync } from 'node:fs';

const NOBODY = 65_534;

/** Runs what is synchronous as a user who owns nothing, where the tests run as root: root may write anywhere. */
export function asNobody<T>(work: () => T): T {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    return work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

/** Makes a folder one in which nobody but root may write. */
export function lock(folder: string): void {
  chmodSync(folder, 0o555);
}
