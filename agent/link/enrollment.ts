import { Metadata, status, type ServiceError } from '@grpc/grpc-js';
import { readFileSync } from 'node:fs';
import { isLoopback, parseAddress } from '../../shared/addresses.js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import type { EnrollRequest, EnrollResponse, Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { fingerprintIn } from '../../shared/tls.js';
import { requestCertificate } from './certificate-request.js';
import { clientOf, type Channel } from './channel.js';
import { formerHostId, putAside } from './former-state.js';
import { isEnrolled, loadIdentity, prepareFolder, saveIdentity, type Identity } from './identity.js';
import { fetchAuthority, type Trust } from './trust.js';

/** What a host says of itself on enrolling. */
export type Introduction = Pick<EnrollRequest, 'earlier'> & { inventory: Inventory };

/** Where and how a host enrols. */
export interface Enrollment {
  /** `host:port` */
  controlPlane: string;
  token: string;
  /** A file with the certificates of those who may vouch for the control plane. */
  authorityFile?: string;
  /** Speak plain text, also over a network. */
  plainText?: boolean;
  /** Be the same host again, with a token of its machine. */
  again?: boolean;
  /** Be a new machine, whichever this host was before. */
  new?: boolean;
}

const DIAL_TIMEOUT_MS = 15_000;

/**
 * Throws SetupError when the host is enrolled already, or is to be again and is not; or when the address is none. To be called
 * before anything takes long.
 */
export function checkBeforeEnroll(stateDir: string, { controlPlane, again = false, new: asNew }: Enrollment): void {
  parseAddress('--control-plane', controlPlane);
  if (again && asNew)
    throw new SetupError(
      '--again is for the same machine, with a token of it, and --new for another one: give one of the two',
    );
  if (asNew || again === isEnrolled(stateDir)) return;
  if (again) throw new SetupError('this host is not enrolled yet: leave out --again');
  const { hostId, controlPlane: current } = loadIdentity(stateDir);
  throw new SetupError(
    `this host is enrolled at ${current} as ${hostId}; to be the same machine again, add --again, with a token of that machine; where the operator has removed that machine, add --new to be a new one`,
  );
}

/**
 * Trades the token for an identity and keeps it; the folder is tried first, for the token may work only once. What belongs to the
 * machine that it was before is put aside where it is a new one. Throws SetupError with the control plane's reason.
 */
export async function enroll(stateDir: string, enrollment: Enrollment, introduction: Introduction): Promise<Identity> {
  prepareFolder(stateDir);
  const { controlPlane, token } = enrollment;
  const trust = await trustFor(enrollment);
  const { key, request } = trust ? await requestCertificate() : { key: '', request: Buffer.alloc(0) };
  const hostId = enrollment.again ? loadIdentity(stateDir).hostId : '';
  const answer = await ask(controlPlane, trust && { trust }, {
    ...introduction,
    token,
    certificateRequest: request,
    hostId,
  });
  const identity: Identity = {
    hostId: answer.hostId,
    controlPlane,
    proof: trust
      ? { kind: 'certificate', key, certificate: answer.certificate, trust }
      : { kind: 'secret', credential: answer.credential },
  };
  const before = enrollment.new ? formerHostId(stateDir) : undefined;
  if (before !== undefined && before !== identity.hostId) putAside(stateDir, before);
  saveIdentity(stateDir, identity);
  return identity;
}

/** By what the control plane is to be known; null: it is on this machine, or plain text was asked for. */
async function trustFor({ controlPlane, token, authorityFile, plainText }: Enrollment): Promise<Trust | null> {
  if (plainText) return null;
  if (authorityFile !== undefined) return { authority: readAuthority(authorityFile), own: false };
  const fingerprint = fingerprintIn(token);
  if (fingerprint !== undefined) return { authority: await fetchAuthority(controlPlane, fingerprint), own: true };
  return isLoopback(parseAddress('--control-plane', controlPlane).host) ? null : { own: false };
}

async function ask(controlPlane: string, channel: Channel, request: EnrollRequest): Promise<EnrollResponse> {
  const client = clientOf(controlPlane, channel);
  try {
    return await new Promise<EnrollResponse>((resolve, reject) => {
      client.enroll(request, new Metadata(), { deadline: Date.now() + DIAL_TIMEOUT_MS }, (error, response) =>
        error ? reject(refusal(controlPlane, channel, error)) : resolve(response),
      );
    });
  } finally {
    client.close();
  }
}

function refusal(controlPlane: string, channel: Channel, error: ServiceError): SetupError {
  if (error.code !== status.UNAVAILABLE && error.code !== status.DEADLINE_EXCEEDED)
    return new SetupError(`${controlPlane} did not enrol this host: ${error.details}`);
  const hint = channel
    ? 'if it is known by an authority of your own, name its file with --ca; plain text over a network has to be asked for with --plain-text'
    : 'it was spoken to in plain text; where it speaks TLS, the token ends with its fingerprint, or --ca names who vouches for it';
  return new SetupError(`${controlPlane} cannot be spoken to (${error.details}); ${hint}`);
}

function readAuthority(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new SetupError(`--ca ${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
