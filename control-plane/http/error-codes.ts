import { Type, type TSchema } from 'typebox';
import type { RefusalCode } from '../domain/refusal.js';
import { integer, list, micro, text, timestamp } from './schemas.js';

/** What the HTTP layer turns down by itself. */
export type HttpErrorCode =
  | 'HEADERS_TOO_LARGE'
  | 'INTERNAL'
  | 'MALFORMED_JSON'
  | 'MALFORMED_REQUEST'
  | 'METHOD_NOT_ALLOWED'
  | 'PAYLOAD_TOO_LARGE'
  | 'REQUEST_TIMEOUT'
  | 'UNSUPPORTED_MEDIA_TYPE';

export type ErrorCode = RefusalCode | HttpErrorCode;

export interface ErrorDefinition {
  status: number;
  /** When a caller meets it, in words for the API's document. */
  meaning: string;
  /** Fields that join `code`, `message` and `request_id`. */
  extra?: Readonly<Record<string, TSchema>>;
}

const Details = list(
  Type.Object({
    path: text('The field or parameter, dotted; empty for the whole'),
    message: text('What is wrong with it'),
  }),
  'What is wrong',
);
const limit = integer('How many there may be');

/** Every error of the API, once: what the server answers and what the document says come from here. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorDefinition>> = {
  ACCESS_UNSUPPORTED: {
    status: 409,
    meaning: "The agent of the instance's machine is too old to replace its access; deploy again.",
  },
  ADMIN_REQUIRED: { status: 403, meaning: 'This takes the session of an admin; an API key never suffices.' },
  ALREADY_MEMBER: { status: 409, meaning: 'The user belongs to the organization already.' },
  API_KEY_NOT_FOUND: { status: 404, meaning: 'No active key of the organization has this id.' },
  CAPACITY_UNAVAILABLE: {
    status: 409,
    meaning: "The instance's GPUs were released and another renter now uses one of them.",
  },
  CHECKOUT_UNAVAILABLE: {
    status: 409,
    meaning: 'This marketplace takes no payments by itself; its operator grants credit.',
  },
  DISK_TOO_LARGE: {
    status: 422,
    meaning: "disk_gb exceeds the machine's whole disk.",
    extra: { max_disk_gb: integer("The machine's whole disk in GB") },
  },
  EMAIL_TAKEN: { status: 409, meaning: 'An account with this e-mail address exists.' },
  HEADERS_TOO_LARGE: { status: 431, meaning: 'The request line and headers exceed 16 KiB.' },
  HOST_UNREACHABLE: { status: 409, meaning: "The instance's machine is not connected." },
  IDEMPOTENCY_KEY_REUSED: { status: 409, meaning: 'The Idempotency-Key stands for another request.' },
  INSTANCE_LIMIT_REACHED: {
    status: 409,
    meaning: 'The organization has as many instances that are not destroyed as it may.',
    extra: { limit },
  },
  INSTANCE_NOT_FOUND: { status: 404, meaning: 'No instance of the organization has this id.' },
  INSUFFICIENT_BALANCE: {
    status: 402,
    meaning: "The balance does not cover one hour of the organization's burn with this instance running.",
    extra: { balance_micro: micro('What the organization has'), required_micro: micro('What it needs') },
  },
  INTERNAL: { status: 500, meaning: 'Something went wrong here; report it with its request_id.' },
  INVALID_CREDENTIALS: { status: 401, meaning: 'The e-mail address or the password is wrong.' },
  INVALID_STATE: {
    status: 409,
    meaning: 'The instance is in a status that does not allow this; the message names it.',
  },
  INVITATION_REQUIRED: {
    status: 403,
    meaning: 'This marketplace takes new accounts by invitation only: sign up with invite_token.',
  },
  INVITE_NOT_FOUND: { status: 404, meaning: 'No invitation that is still open answers to this.' },
  LAST_ADMIN: { status: 409, meaning: 'The organization would be left without an admin.' },
  LIMIT_REACHED: {
    status: 409,
    meaning: 'The user or the organization has as many of these as it may.',
    extra: { limit },
  },
  MACHINE_DISK_EXHAUSTED: {
    status: 409,
    meaning: "The machine's disk is committed to other renters.",
    extra: {
      available_disk_gb: integer('What of the disk is left, in GB'),
      requested_disk_gb: integer('What was asked for, in GB'),
    },
  },
  MACHINE_IN_MAINTENANCE: {
    status: 409,
    meaning: 'The machine is scheduled to go offline too soon to start on.',
    extra: { next_maintenance: timestamp('When its maintenance window starts') },
  },
  MACHINE_IN_USE: {
    status: 409,
    meaning:
      'The machine is connected and cannot be declared lost, or something is on it and it was not: the message says which, and what to do.',
  },
  MACHINE_NOT_FOUND: { status: 404, meaning: 'No machine has this id.' },
  MALFORMED_JSON: { status: 400, meaning: 'The body is not valid JSON.' },
  MALFORMED_REQUEST: { status: 400, meaning: 'This is not HTTP.' },
  MEMBER_NOT_FOUND: { status: 404, meaning: 'No member of the organization has this id.' },
  METHOD_NOT_ALLOWED: { status: 405, meaning: 'The address takes other methods; the header Allow names them.' },
  NOT_FOUND: { status: 404, meaning: 'There is nothing at this address.' },
  OFFER_NOT_FOUND: { status: 404, meaning: 'No offer has this id.' },
  OFFER_NOT_PINNABLE: { status: 409, meaning: "The offer's machine is not registered with the control plane." },
  OFFER_NOT_VM_CAPABLE: { status: 422, meaning: 'A vm template on a machine that cannot run virtual machines.' },
  OFFER_UNAVAILABLE: { status: 409, meaning: 'The offer is unknown or withdrawn, or no unit of it is free.' },
  ORG_MISMATCH: { status: 403, meaning: 'X-Org-Id names an organization that the credential does not belong to.' },
  ORGANIZATION_NOT_FOUND: { status: 404, meaning: 'No organization has this id.' },
  OWN_ACCOUNT: { status: 409, meaning: 'Operators do not remove their own accounts; another operator can.' },
  PAYLOAD_TOO_LARGE: { status: 413, meaning: 'The body is too large.' },
  PAYMENTS_FROZEN: { status: 402, meaning: 'A payment dispute on the organization is open.' },
  QUARANTINE_NOT_FOUND: { status: 404, meaning: 'No workload in quarantine has this id.' },
  RATE_LIMITED: {
    status: 429,
    meaning: 'Too many requests from this address, with this credential, or for this account; see Retry-After.',
    extra: { retry_after_seconds: integer('After how many seconds it is worth trying again') },
  },
  REQUEST_TIMEOUT: { status: 408, meaning: 'The request did not arrive in time.' },
  SIGNATURE_INVALID: {
    status: 400,
    meaning: 'The event was not signed with the secret that is set here, or too long ago.',
  },
  SSH_KEY_EXISTS: { status: 409, meaning: 'The user has this SSH key already.' },
  SSH_KEY_NOT_FOUND: { status: 404, meaning: 'No SSH key that this credential may attach or remove has this id.' },
  START_REFUSED: {
    status: 409,
    meaning: 'The host refused the start, or no longer holds the workload; the message says which.',
  },
  START_UNAVAILABLE: { status: 503, meaning: 'The start could not be completed right now; retry shortly.' },
  TEMPLATE_ARCH_UNSUPPORTED: { status: 422, meaning: 'The template needs hardware other than x86_64.' },
  TEMPLATE_COMING_SOON: { status: 422, meaning: "The template's image is not published yet." },
  TEMPLATE_CUDA_TOO_NEW: {
    status: 422,
    meaning: 'The template supports CUDA only up to its cuda_max, and the machine has a newer version.',
  },
  TEMPLATE_NOT_FOUND: { status: 404, meaning: 'No active template that the organization can see has this id.' },
  TEMPLATE_REQUIRES_OWNER: {
    status: 422,
    meaning: 'The template pulls from a private registry; only its owner may deploy it.',
  },
  TOKEN_INVALID: {
    status: 401,
    meaning: 'The credential is missing, malformed, expired or revoked, or an API key where a session is needed.',
  },
  UNAVAILABLE: {
    status: 503,
    meaning: 'The control plane is stopping, or cannot serve at this moment; try again shortly.',
  },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, meaning: 'Bodies are JSON: Content-Type: application/json.' },
  USER_NOT_FOUND: { status: 404, meaning: 'No user has this id.' },
  VALIDATION_FAILED: {
    status: 422,
    meaning: 'A field or parameter is not valid; details names it.',
    extra: { details: Details },
  },
};
