import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stateFolder } from '../context/paths.js';
import { writePrivate } from '../context/private-file.js';
import type { Terminal } from '../terminal/terminal.js';
import type { SshTarget } from './ssh-target.js';

const folderOf = ({ env }: Terminal): string => join(stateFolder(env), 'known_hosts');

/**
 * Returns the options with which ssh and scp verify the host key of an instance, also at the first connection. If its host cannot tell
 * the key, ssh asks the person, and remembers the answer.
 */
export function verifyingOptions(terminal: Terminal, { alias, hostKey }: SshTarget): [name: string, value: string][] {
  const file = join(folderOf(terminal), alias);
  if (hostKey !== null) writePrivate(file, `${alias} ${hostKey}\n`);
  return [
    ['HostKeyAlias', alias],
    ['UserKnownHostsFile', `"${file}"`],
    ['GlobalKnownHostsFile', '/dev/null'],
    ['StrictHostKeyChecking', hostKey === null ? 'ask' : 'yes'],
    ['CheckHostIP', 'no'],
  ];
}

/** Forgets the host keys of all instances but these. */
export function forgetOthers(terminal: Terminal, aliases: readonly string[]): void {
  const folder = folderOf(terminal);
  let files: string[];
  try {
    files = readdirSync(folder);
  } catch {
    return;
  }
  for (const file of files)
    if (file.startsWith('gpurent-') && !aliases.includes(file)) rmSync(join(folder, file), { force: true });
}
