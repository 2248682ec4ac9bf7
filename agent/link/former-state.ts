import { copyFileSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { identityFile, isEnrolled, loadIdentity } from './identity.js';

/** The files and folders that belong to one identity: the journal, and the state of that machine's instances. */
const OWN = /^(journal\.db.*|data-roots|(etc|access)(-canary)?)$/;

/** Returns the folder that keeps the state of an earlier identity of this host. */
export function formerFolder(stateDir: string, hostId: string): string {
  return join(stateDir, `before-${hostId}`);
}

/** Returns the host id of the present identity, `unknown` if its file cannot be read; undefined if the host is not enrolled. */
export function formerHostId(stateDir: string): string | undefined {
  if (!isEnrolled(stateDir)) return undefined;
  try {
    return loadIdentity(stateDir).hostId;
  } catch {
    return 'unknown';
  }
}

/**
 * Moves the state of that identity into a folder of its own, with a copy of the identity, so that nothing is lost. The identity itself
 * stays in place until another one replaces it.
 */
export function putAside(stateDir: string, hostId: string): void {
  const folder = formerFolder(stateDir, hostId);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  copyFileSync(identityFile(stateDir), identityFile(folder));
  for (const name of readdirSync(stateDir)) if (OWN.test(name)) renameSync(join(stateDir, name), join(folder, name));
}
