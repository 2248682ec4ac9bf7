import { ApiError, EventsExpiredError, UnreachableError } from '../../api/index.js';
import { adviceFor } from './advice.js';
import { CliError } from './cli-error.js';
import { EXIT, type ExitCode } from './exit-codes.js';

/** An error as a person or a program gets to see it. */
export interface Explained {
  exitCode: ExitCode;
  /** The code of the API; otherwise null. */
  code: string | null;
  message: string;
  advice: string | null;
  /** For the operator's logs; only of faults of the control plane. */
  requestId: string | null;
}

/** Returns with which exit code a command ends after an error, what is wrong, and what to do. */
export function explain(error: unknown): Explained {
  const plain = { code: null, advice: null, requestId: null };
  if (error instanceof CliError)
    return { ...plain, exitCode: error.exitCode, message: error.message, advice: error.advice };
  if (error instanceof ApiError) return ofApi(error);
  if (error instanceof UnreachableError) {
    return { ...plain, exitCode: EXIT.unreachable, message: error.message, advice: ofUnreached(error) };
  }
  if (error instanceof EventsExpiredError) return { ...plain, exitCode: EXIT.refused, message: error.message };
  const reason = error instanceof Error ? error.message : String(error);
  return {
    ...plain,
    exitCode: EXIT.internal,
    message: reason,
    advice: 'This is a fault of gpurent: please report it.',
  };
}

const NOT_REACHED = 'Check the address (gpurent context) and your network, then repeat the command.';
const UNKNOWN_ISSUER =
  'This machine does not know who has issued the certificate. If it is your company or your operator, give the certificate of that authority with --cacert FILE (or GPURENT_CACERT), or add it to the store of the system.';
const EXPIRED =
  'If the clock of this machine is right, the certificate of the control plane has to be renewed: tell its operator.';
/** As OpenSSL names it, where it finds no way from a certificate to an authority that is trusted. */
const UNKNOWN_ISSUER_CODES = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
];

function ofUnreached(error: UnreachableError): string {
  if (isCausedBy(error, UNKNOWN_ISSUER_CODES)) return UNKNOWN_ISSUER;
  return isCausedBy(error, ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']) ? EXPIRED : NOT_REACHED;
}

function isCausedBy(error: unknown, codes: readonly string[]): boolean {
  if (!(error instanceof Error)) return false;
  return codes.includes((error as NodeJS.ErrnoException).code ?? '') || isCausedBy(error.cause, codes);
}

function ofApi(error: ApiError): Explained {
  const exitCode = exitCodeOf(error);
  const { code, message, requestId } = error;
  return { exitCode, code, message, advice: adviceFor(code), requestId: exitCode === EXIT.internal ? requestId : null };
}

const WRONG_INPUT = ['VALIDATION_FAILED', 'MALFORMED_REQUEST', 'MALFORMED_JSON'];
const SIGN_IN_ENDED = ['ACCESS_DENIED', 'EXPIRED_TOKEN'];
const ANSWERS_LATER = [429, 502, 503, 504];

function exitCodeOf({ status, code }: ApiError): ExitCode {
  if (code === 'UNEXPECTED_ANSWER' || ANSWERS_LATER.includes(status)) return EXIT.unreachable;
  if (status === 401 || SIGN_IN_ENDED.includes(code)) return EXIT.unauthorized;
  if (status === 402) return EXIT.noMoney;
  if (status === 404) return EXIT.notFound;
  if (WRONG_INPUT.includes(code)) return EXIT.usage;
  return status >= 500 ? EXIT.internal : EXIT.refused;
}
