import { status, type Metadata } from '@grpc/grpc-js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import { REDIAL_AFTER } from '../../shared/protocol.js';

/**
 * Why a host is not connected. `refused`: the control plane refuses the host, or the host the control plane; `untrusted`: the host does
 * not trust the certificate of the control plane; `other`: the control plane cannot be reached, or has ended the stream.
 */
export interface LinkFailure {
  kind: 'refused' | 'untrusted' | 'other';
  reason: string;
}

const REFUSALS: ReadonlySet<unknown> = new Set([
  status.UNAUTHENTICATED,
  status.PERMISSION_DENIED,
  status.FAILED_PRECONDITION,
  status.RESOURCE_EXHAUSTED,
]);
/** Matches the messages of Node and OpenSSL. */
const UNTRUSTED = /certificate|self.signed|altname|wrong version number|CERT_|ERR_TLS/i;
const MOST_CHARS = 500;
// oxlint-disable-next-line no-control-regex -- a stranger's text must not control the terminal that shows it
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g;

/** Classifies the error that has ended a stream or an attempt to open one. */
export function linkFailureOf(error: unknown): LinkFailure {
  const { code, details } = error as { code?: unknown; details?: unknown };
  const said = typeof details === 'string' && details !== '' ? details : messageOf(error);
  const reason = said.replace(CONTROL, ' ').slice(0, MOST_CHARS);
  if (error instanceof SetupError || REFUSALS.has(code)) return { kind: 'refused', reason };
  return { kind: code === status.UNAVAILABLE && UNTRUSTED.test(said) ? 'untrusted' : 'other', reason };
}

/** Returns after how many ms the refusal of a control plane asks to dial again; 0: it does not say. */
export function advisedMsOf(error: unknown): number {
  const { metadata } = error as { metadata?: Metadata };
  const advised = Number(metadata?.get(REDIAL_AFTER)[0]);
  return advised > 0 ? advised : 0;
}
