import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Instance } from '../../api/index.js';
import { SSH_FINGERPRINT } from '../../text/ssh-keys.js';
import { stateFolder } from '../context/paths.js';
import { writePrivate } from '../context/private-file.js';
import type { Terminal } from '../terminal/terminal.js';
import { publicKeyFiles } from './own-keys.js';
import type { SshTarget } from './ssh-target.js';

/** So many files that the configuration of ssh names are looked at. */
const MOST_FILES = 20;

/** Which key logs in to an instance, and where this computer has it. */
export interface FittingKey {
  /** Null: the control plane does not say. */
  fingerprint: string | null;
  /** What `ssh -i` takes: the private key, or the public one of a key that the agent has. Null: there is none here. */
  file: string | null;
}

/** Looks for the key of an instance in ~/.ssh, among the files that the configuration of ssh names for its host, and in the SSH agent. */
export async function findFittingKey(
  terminal: Terminal,
  { ssh_key_fingerprint: fingerprint }: Instance,
  target: SshTarget,
): Promise<FittingKey> {
  // A control plane of an earlier release does not know it.
  if (!fingerprint || !SSH_FINGERPRINT.test(fingerprint)) return { fingerprint: null, file: null };
  const file = fileInHome(terminal, fingerprint);
  const found =
    file && existsSync(file)
      ? file
      : ((await keyOfAgent(terminal, fingerprint, target)) ??
        (await keyOfConfiguration(terminal, fingerprint, target)));
  return { fingerprint, file: found ?? null };
}

/** Returns the options with which ssh and scp offer this key and no other: servers end a connection after a few that do not fit. */
export const offering = ({ file }: FittingKey): string[] =>
  file === null ? [] : ['-i', file, '-o', 'IdentitiesOnly=yes'];

/** Says what to do where ssh has no key that fits; undefined: that is not known. */
export function missingKey({ fingerprint, file }: FittingKey, { id, template }: Instance): string | undefined {
  if (fingerprint === null || file !== null) return undefined;
  const other =
    template.kind === 'vm'
      ? 'In a virtual machine, replace it inside.'
      : `Replace it with one of yours (gpurent ssh-keys): gpurent access ${id} --ssh-key KEY`;
  return `If you have it elsewhere, name its file with --identity. ${other}`;
}

function fileInHome(terminal: Terminal, fingerprint: string): string | undefined {
  return publicKeyFiles(terminal)
    .find((file) => fingerprintOf(textOf(file)) === fingerprint)
    ?.replace(/\.pub$/, '');
}

async function keyOfAgent(terminal: Terminal, fingerprint: string, { alias }: SshTarget): Promise<string | undefined> {
  const lines = (await terminal.read('ssh-add', ['-L'])).split('\n');
  const line = lines.find((each) => fingerprintOf(each) === fingerprint);
  if (line === undefined) return undefined;
  const file = join(stateFolder(terminal.env), 'keys', `${alias}.pub`);
  writePrivate(file, `${line.split(' ').slice(0, 2).join(' ')}\n`);
  return file;
}

async function keyOfConfiguration(
  terminal: Terminal,
  fingerprint: string,
  { host, port, user }: SshTarget,
): Promise<string | undefined> {
  const shown = await terminal.read('ssh', ['-G', '-p', String(port), '-l', user, '--', host]);
  const files = shown
    .split('\n')
    .flatMap((line) => /^identityfile (.+)$/.exec(line)?.[1] ?? [])
    .map((file) => file.replace(/^~(?=\/)/, terminal.env['HOME'] ?? homedir()))
    .filter((file) => existsSync(file));
  for (const file of files.slice(0, MOST_FILES)) {
    const told = await terminal.read('ssh-keygen', ['-l', '-f', file]);
    if (told.split(' ')[1] === fingerprint) return file;
  }
  return undefined;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Returns the fingerprint of a line of a public key file. */
function fingerprintOf(line: string): string | undefined {
  const [, base64 = ''] = line.trim().split(/\s+/);
  if (base64 === '') return undefined;
  const digest = createHash('sha256').update(Buffer.from(base64, 'base64')).digest('base64');
  return `SHA256:${digest.replace(/=+$/, '')}`;
}
