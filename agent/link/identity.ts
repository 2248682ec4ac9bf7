import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import type { Trust } from './trust.js';

/** How the host proves who it is: over TLS by a certificate and its key (both PEM), in plain text by a secret. */
export type Proof =
  { kind: 'certificate'; key: string; certificate: string; trust: Trust } | { kind: 'secret'; credential: string };

/** Who this host is, and to whom. Readable by its owner alone. */
export interface Identity {
  hostId: string;
  /** `host:port` */
  controlPlane: string;
  proof: Proof;
}

export function identityFile(stateDir: string): string {
  return join(stateDir, 'identity.json');
}

export function isEnrolled(stateDir: string): boolean {
  return existsSync(identityFile(stateDir));
}

/** Throws SetupError when the host is not enrolled. */
export function loadIdentity(stateDir: string): Identity {
  try {
    return JSON.parse(readFileSync(identityFile(stateDir), 'utf8')) as Identity;
  } catch (error) {
    throw new SetupError(
      `this host is not enrolled (${messageOf(error)}); run "gpurent-agent enroll --control-plane HOST:PORT --token TOKEN"`,
    );
  }
}

/** Puts an identity in the place of the one before, whole or not at all. */
export function saveIdentity(stateDir: string, identity: Identity): void {
  const file = identityFile(stateDir);
  writeFileSync(`${file}.new`, `${JSON.stringify(identity, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

/** Makes the folder, and tries it: a token may work only once. Throws SetupError. */
export function prepareFolder(stateDir: string): void {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.W_OK);
  } catch (error) {
    throw new SetupError(
      `${stateDir} cannot be written (${messageOf(error)}); run as root, or set GPURENT_AGENT_STATE_DIR`,
    );
  }
}
