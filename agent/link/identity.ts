import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import type { Trust } from './trust.js';

/** How the host authenticates: over TLS with a certificate and its key (both PEM), in plain text with a secret. */
export type Proof =
  | { kind: 'certificate'; key: string; certificate: string; trust: Trust }
  | { kind: 'secret'; credential: string };

/** The host's identity at one control plane. Its file is readable only by the user of the agent. */
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

/** Reads the identity. Throws SetupError if the host is not enrolled. */
export function loadIdentity(stateDir: string): Identity {
  try {
    return JSON.parse(readFileSync(identityFile(stateDir), 'utf8')) as Identity;
  } catch (error) {
    throw new SetupError(
      `this host is not enrolled (${messageOf(error)}); run "gpurent-agent enroll --control-plane HOST:PORT --token TOKEN"`,
    );
  }
}

/** Replaces the identity atomically. */
export function saveIdentity(stateDir: string, identity: Identity): void {
  const file = identityFile(stateDir);
  writeFileSync(`${file}.new`, `${JSON.stringify(identity, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

/** Creates the folder and checks that it can be written, because a token can work only once. Throws SetupError. */
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
