import { copyFileSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { identityFile, isEnrolled, loadIdentity } from './identity.js';

/** What belongs to one identity: the journal, and what is noted of that machine's instances. */
const OWN = /^(journal\.db.*|data-roots|(etc|access)(-canary)?)$/;

/** Where what belonged to an earlier identity of this host is kept. */
export function formerFolder(stateDir: string, hostId: string): string {
  return join(stateDir, `before-${hostId}`);
}

/** The machine that this host is, or was; undefined: it is not enrolled. */
export function formerHostId(stateDir: string): string | undefined {
  if (!isEnrolled(stateDir)) return undefined;
  try {
    return loadIdentity(stateDir).hostId;
  } catch {
    return 'unknown';
  }
}

/**
 * Puts what belongs to that identity into a folder of its own, a copy of the identity with it, so that nothing of it is lost; the
 * identity itself stays until another takes its place.
 */
export function putAside(stateDir: string, hostId: string): void {
  const folder = formerFolder(stateDir, hostId);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  copyFileSync(identityFile(stateDir), identityFile(folder));
  for (const name of readdirSync(stateDir)) if (OWN.test(name)) renameSync(join(stateDir, name), join(folder, name));
}
