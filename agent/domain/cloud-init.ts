import type { EnvVar } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { shellExports, shellVariables } from './shell.js';

export interface GuestFacts {
  instanceId: string;
  /** The account that the key is for; cloud-init creates it unless the disk has it. */
  sshUser: string;
  /** One line of an authorized_keys file; empty: none. */
  sshAuthorizedKey: string;
  env: readonly EnvVar[];
  /** A shell script, run at every boot; empty: none. */
  onstart: string;
}

const PROFILE = '/etc/profile.d/gpurent.sh';
const ONSTART = '/var/lib/gpurent/onstart';
const PER_BOOT = '/var/lib/cloud/scripts/per-boot/gpurent-onstart';
const LONGEST_LINE = 1_000;

/** Returns the files of a NoCloud seed. A renter's text is in base64 or plain ASCII, so it cannot inject YAML. */
export function seedOf(facts: GuestFacts): { 'meta-data': string; 'user-data': string } {
  const hostname = facts.instanceId.slice(0, 8);
  const metaData = { 'instance-id': facts.instanceId, 'local-hostname': hostname };
  const userData = {
    hostname,
    manage_etc_hosts: 'localhost',
    users: facts.sshAuthorizedKey === '' ? [] : [accountOf(facts)],
    disable_root: facts.sshUser !== 'root',
    ssh_pwauth: false,
    write_files: filesOf(facts),
  };
  return { 'meta-data': JSON.stringify(metaData), 'user-data': `#cloud-config\n${JSON.stringify(userData)}\n` };
}

function accountOf({ sshUser, sshAuthorizedKey }: GuestFacts) {
  // Without its comment, which can contain anything.
  const key = sshAuthorizedKey.split(' ').slice(0, 2).join(' ');
  const account = { name: sshUser, ssh_authorized_keys: [key] };
  if (sshUser === 'root') return account;
  return { ...account, sudo: 'ALL=(ALL) NOPASSWD:ALL', shell: '/bin/bash', lock_passwd: true };
}

function filesOf({ env, onstart }: GuestFacts) {
  const lines = shellVariables(env).flatMap(lineOf);
  const run = `#!/bin/sh\n. ${PROFILE}\nexec /bin/sh ${ONSTART}\n`;
  return [
    { path: PROFILE, permissions: '0644', ...base64(shellExports(env)) },
    ...(lines.length > 0 ? [{ path: '/etc/environment', append: true, ...base64(lines.join('')) }] : []),
    ...(onstart === ''
      ? []
      : [
          { path: ONSTART, permissions: '0700', ...base64(onstart) },
          { path: PER_BOOT, permissions: '0755', ...base64(run) },
        ]),
  ];
}

function base64(text: string) {
  return { encoding: 'b64', content: Buffer.from(text).toString('base64') };
}

/** Returns the line of /etc/environment for a variable; none if the file cannot express the value, which then only shells get. */
function lineOf({ key, value }: EnvVar): string[] {
  const line = `${key}="${value}"\n`;
  return /["#\\\n\r]/.test(value) || line.length > LONGEST_LINE ? [] : [line];
}
