import { Metadata, status, type ServiceError } from '@grpc/grpc-js';
import { readFileSync } from 'node:fs';
import { isLoopback, parseAddress } from '../../shared/network/addresses.js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import type { EnrollRequest, EnrollResponse, Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { fingerprintIn } from '../../shared/network/tls.js';
import { requestCertificate } from './certificate-request.js';
import { clientOf, type Channel } from './channel.js';
import { formerHostId, putAside } from './former-state.js';
import { isEnrolled, loadIdentity, prepareFolder, saveIdentity, type Identity } from './identity.js';
import { fetchAuthority, type Trust } from './trust.js';

/** The facts about itself that a host sends when it enrolls. */
export type Introduction = Pick<EnrollRequest, 'earlier'> & { inventory: Inventory };

/** The options of an enrollment. */
export interface Enrollment {
  /** `host:port` */
  controlPlane: string;
  token: string;
  /** A PEM file with the certificates of authorities that can sign the control plane's certificate. */
  authorityFile?: string;
  /** Use plain text, even over a network. */
  plainText?: boolean;
  /** Enroll again as the same machine, with a token for that machine. */
  again?: boolean;
  /** Enroll as a new machine, even if this host was another machine before. */
  new?: boolean;
}

const DIAL_TIMEOUT_MS = 15_000;

/**
 * Checks the options before the slow steps of an enrollment. Throws SetupError for a bad address, for both `again` and `new`, for a host
 * that is already enrolled without either option, and for `again` on a host that is not enrolled.
 */
export function checkBeforeEnroll(stateDir: string, { controlPlane, again = false, new: asNew }: Enrollment): void {
  parseAddress('--control-plane', controlPlane);
  if (again && asNew)
    throw new SetupError('--again enrolls the same machine again, and --new a new machine: give only one of them');
  if (asNew || again === isEnrolled(stateDir)) return;
  if (again) throw new SetupError('this host is not enrolled yet: leave out --again');
  const { hostId, controlPlane: current } = loadIdentity(stateDir);
  throw new SetupError(
    `this host is enrolled at ${current} as ${hostId}; to enroll again as the same machine, add --again and use a token for that machine; if the operator has removed that machine, add --new to enroll as a new one`,
  );
}

/**
 * Exchanges the token for an identity and saves it. Checks first that the folder can be written, because the token can work only once.
 * For a new machine, moves the state of the earlier machine aside. Throws SetupError with the control plane's reason.
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

/** Returns how to verify the control plane; null for plain text: requested, or the control plane is on this machine. */
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
    return new SetupError(`${controlPlane} did not enroll this host: ${error.details}`);
  const hint = channel
    ? 'if an authority of your own signed its certificate, give the file of that authority with --ca; if it uses plain text, add --plain-text'
    : 'the agent used plain text; if the control plane uses TLS, use a token that ends with its fingerprint, or give the file of its authority with --ca';
  return new SetupError(`no connection to ${controlPlane} (${error.details}); ${hint}`);
}

function readAuthority(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new SetupError(`--ca ${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
