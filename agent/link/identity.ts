import { Metadata, credentials } from '@grpc/grpc-js';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import { AgentServiceClient, type EnrollResponse, type Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { AGENT_OPTIONS } from '../../shared/protocol.js';

/** Who this host is, and to whom. Readable by its owner alone. */
export interface Identity {
  hostId: string;
  credential: string;
  /** `host:port` */
  controlPlane: string;
}

const DIAL_TIMEOUT_MS = 15_000;

function identityFile(stateDir: string): string {
  return join(stateDir, 'identity.json');
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

/** Throws SetupError when the host is enrolled already, or the address would be spoken to in plain text over a network. */
export function checkBeforeEnroll(stateDir: string, controlPlane: string): void {
  if (existsSync(identityFile(stateDir))) {
    const { hostId, controlPlane: current } = loadIdentity(stateDir);
    throw new SetupError(
      `this host is enrolled at ${current} as ${hostId}; remove ${identityFile(stateDir)} to enrol it anew`,
    );
  }
  const host = /^\[?(.+?)\]?:\d+$/.exec(controlPlane)?.[1];
  if (!host) throw new SetupError(`--control-plane is "${controlPlane}"; give HOST:PORT`);
  const loopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (!loopback)
    throw new SetupError(
      `${controlPlane} would be spoken to in plain text; reach it through an encrypted tunnel on 127.0.0.1`,
    );
}

/**
 * Trades the token for an identity and keeps it; the folder is tried first, for the token may work only once. Throws
 * SetupError with the control plane's reason.
 */
export async function enroll(
  stateDir: string,
  controlPlane: string,
  token: string,
  inventory: Inventory,
): Promise<Identity> {
  prepareFolder(stateDir);
  const client = new AgentServiceClient(controlPlane, credentials.createInsecure(), AGENT_OPTIONS);
  try {
    const answer = await new Promise<EnrollResponse>((resolve, reject) => {
      client.enroll(
        { token, inventory },
        new Metadata(),
        { deadline: Date.now() + DIAL_TIMEOUT_MS },
        (error, response) =>
          error
            ? reject(new SetupError(`${controlPlane} did not enrol this host: ${error.details}`))
            : resolve(response),
      );
    });
    const identity: Identity = { ...answer, controlPlane };
    const text = `${JSON.stringify(identity, null, 2)}\n`;
    writeFileSync(`${identityFile(stateDir)}.new`, text, { mode: 0o600, flush: true });
    renameSync(`${identityFile(stateDir)}.new`, identityFile(stateDir));
    return identity;
  } finally {
    client.close();
  }
}

function prepareFolder(stateDir: string): void {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.W_OK);
  } catch (error) {
    throw new SetupError(
      `${stateDir} cannot be written (${messageOf(error)}); run as root, or set GPURENT_AGENT_STATE_DIR`,
    );
  }
}
