import { Type, type TSchema } from 'typebox';
import type { RefusalCode } from '../../domain/refusal.js';
import { CAP_KINDS } from '../../domain/money/spend-cap.js';
import { choice, integer, list, micro, nullable, optional, text, timestamp } from '../schema/schemas.js';

/** The codes of errors that no use case throws, only the HTTP layer. */
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
  /** When the error occurs: the text in the OpenAPI document and in docs/codes.md. */
  meaning: string;
  /** The fields that the error adds to `code`, `message` and `request_id`. */
  extra?: Readonly<Record<string, TSchema>>;
  /** Whether only pages answer with it, so that the OpenAPI document leaves it out. */
  onlyOnPages?: boolean;
}

const Details = list(
  Type.Object({
    path: text('The field or parameter as a dotted path; empty for the whole body'),
    message: text('What is wrong with it'),
  }),
  'Each field or parameter that is not valid',
);
const limit = integer('The limit');

/** Every error of the API. Both the server's answers and the OpenAPI document use this table. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorDefinition>> = {
  ACCESS_DENIED: {
    status: 400,
    meaning: 'The sign-in of this program was denied, or the session that has approved it has ended.',
  },
  ACCESS_UNSUPPORTED: {
    status: 409,
    meaning: "The agent of the instance's machine is too old to replace the instance's access; deploy again.",
  },
  ADMIN_REQUIRED: {
    status: 403,
    meaning:
      'The route requires the session of an admin, or for money also that of a member with the role billing; an API key never suffices.',
  },
  ALREADY_MEMBER: { status: 409, meaning: 'The user belongs to the organization already.' },
  API_KEY_ADDRESS: {
    status: 403,
    meaning: 'The API key cannot be used from this address; send the request from an address that the key allows.',
  },
  API_KEY_NOT_FOUND: { status: 404, meaning: 'No active key of the organization has this id.' },
  API_KEY_READ_ONLY: {
    status: 403,
    meaning: 'The API key can only read; use a key that is not read-only, or sign in.',
  },
  AUTHORIZATION_PENDING: { status: 400, meaning: 'Nobody has approved the sign-in of this program yet.' },
  CAPACITY_UNAVAILABLE: {
    status: 409,
    meaning: "The instance's GPUs were released and another renter now uses one of them.",
  },
  CHECKOUT_UNAVAILABLE: {
    status: 409,
    meaning: 'This marketplace accepts no card payments; its operator grants credit.',
  },
  COMPANY_SIGN_IN_INVALID: {
    onlyOnPages: true,
    status: 400,
    meaning:
      "The return from a company's sign-in proves nothing: it was used or has expired, was begun in another browser, or the company's answer is not valid. Begin the sign-in again.",
  },
  COMPANY_SIGN_IN_REFUSED: {
    onlyOnPages: true,
    status: 403,
    meaning:
      "The company's sign-in has not verified the e-mail address, may not speak for its domain, or belongs to an account that cannot be linked. The message says which, and what to do.",
  },
  COOKIE_REFUSED: {
    status: 403,
    meaning:
      'The request has the cookie of a browser as its credential, and does not prove that a page of this control plane has sent it; or instances are reached at the same name. The message says which, and what to do.',
  },
  DEVICE_CODE_INVALID: {
    status: 404,
    meaning: 'No program waits with this code, or it was not typed in this session.',
  },
  DISK_TOO_LARGE: {
    status: 422,
    meaning: "disk_gb exceeds the machine's whole disk.",
    extra: { max_disk_gb: integer("The machine's whole disk in GB") },
  },
  EMAIL_TAKEN: { status: 409, meaning: 'An account with this e-mail address exists.' },
  EVENTS_EXPIRED: {
    status: 410,
    meaning: 'No event has this id, as after a restore, or events after it are no longer kept.',
    extra: {
      oldest_id: nullable(text('The id of the oldest event that is followed by all later ones; null: there is none')),
    },
  },
  EXPIRED_TOKEN: { status: 400, meaning: 'The code of the program is wrong, or it was used or has expired.' },
  FACTOR_INVALID: {
    status: 401,
    meaning:
      'The code is wrong or was used already, or the passkey is none of the account or has answered another challenge.',
  },
  FACTOR_NOT_FOUND: { status: 404, meaning: 'The user has no second factor with this id, or of this kind.' },
  FACTOR_TOKEN_INVALID: {
    status: 401,
    meaning: 'The sign-in or the enrolment is over: its token is wrong, or it was used or has expired. Begin again.',
  },
  HEADERS_TOO_LARGE: { status: 431, meaning: 'The request line and headers exceed 16 KiB.' },
  HOST_UNREACHABLE: { status: 409, meaning: "The instance's machine is not connected." },
  IDEMPOTENCY_KEY_REUSED: { status: 409, meaning: 'The Idempotency-Key was already used with another body.' },
  IDENTITY_NOT_FOUND: { status: 404, meaning: 'The user has no linked account with this id.' },
  IDENTITY_TAKEN: {
    onlyOnPages: true,
    status: 409,
    meaning: "This account at the company is linked to another user's account.",
  },
  INSTANCE_LIMIT_REACHED: {
    status: 409,
    meaning: 'The organization has reached its limit of instances; those that are not destroyed count.',
    extra: { limit },
  },
  INSTANCE_NOT_FOUND: { status: 404, meaning: 'No instance of the organization has this id.' },
  INSUFFICIENT_BALANCE: {
    status: 402,
    meaning:
      'The balance does not cover one hour of all instances and disks of the organization, including this instance.',
    extra: {
      balance_micro: micro('The balance of the organization'),
      required_micro: micro('The balance that the request needs'),
    },
  },
  INTERNAL: { status: 500, meaning: 'Something went wrong here; report it with its request_id.' },
  INVALID_CREDENTIALS: { status: 401, meaning: 'The e-mail address or the password is wrong.' },
  INVALID_STATE: {
    status: 409,
    meaning:
      'The instance is in a status that does not allow this; the message names it. Or its limits, or a cap, were changed 50 times since a host has last reported. Or the caps or limits of the request are used up already, and would stop more instances at once than it expects.',
    extra: optional({ would_stop: integer('How many instances the caps or limits of the request would stop at once') }),
  },
  INVITATION_REQUIRED: {
    status: 403,
    meaning: 'Only invited users can create an account in this marketplace: sign up with invite_token.',
  },
  INVITE_NOT_FOUND: { status: 404, meaning: 'No open invitation has this id or token.' },
  ISSUER_NOT_FOUND: { status: 404, meaning: "No company's sign-in has this id, or speaks for this domain." },
  ISSUER_TAKEN: {
    status: 409,
    meaning: "Another company's sign-in has the same issuer, or may speak for one of the domains.",
  },
  ISSUER_UNAVAILABLE: {
    onlyOnPages: true,
    status: 503,
    meaning: "The company's sign-in does not answer; try again shortly.",
  },
  LAST_ADMIN: { status: 409, meaning: 'The organization would be left without an admin.' },
  LAST_OPERATOR: { status: 409, meaning: 'The marketplace would be left without an operator.' },
  LAST_SIGN_IN: { status: 409, meaning: 'Without this linked account, the user could not sign in any more.' },
  LIMIT_REACHED: {
    status: 409,
    meaning: 'The user or the organization has reached the limit for this kind of object.',
    extra: { limit },
  },
  LINK_INVALID: { status: 404, meaning: 'The link of a mail is wrong, or it was used or has expired.' },
  MACHINE_DISK_EXHAUSTED: {
    status: 409,
    meaning:
      'The machine has less free disk space than disk_gb, because the rest is committed to other instances or used.',
    extra: {
      available_disk_gb: integer('The free disk space of the machine in GB'),
      requested_disk_gb: integer('The requested disk size in GB'),
    },
  },
  MACHINE_IN_MAINTENANCE: {
    status: 409,
    meaning: "The machine's maintenance window is open or begins within the hour.",
    extra: { next_maintenance: timestamp('When its maintenance window starts') },
  },
  MACHINE_IN_USE: {
    status: 409,
    meaning:
      'The machine is connected, so it cannot be declared lost. Or it has instances or workloads in quarantine and was not declared lost, so it cannot be removed. The message says which, and what to do.',
  },
  MACHINE_NOT_FOUND: { status: 404, meaning: 'No machine has this id.' },
  MAIL_OFF: { status: 409, meaning: 'This control plane sends no mail.' },
  MALFORMED_JSON: {
    status: 400,
    meaning: 'The body is not valid JSON in UTF-8, or has more levels or values than any route takes.',
  },
  MALFORMED_REQUEST: { status: 400, meaning: 'This is not HTTP, or a form of a page that is not UTF-8.' },
  MEMBER_NOT_FOUND: { status: 404, meaning: 'No member of the organization has this id.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    meaning: 'The path does not support this method; the header Allow lists those that it supports.',
  },
  NOT_FOUND: { status: 404, meaning: 'No route or object exists at this path.' },
  OFFER_NOT_FOUND: { status: 404, meaning: 'No offer has this id.' },
  OFFER_NOT_PINNABLE: { status: 409, meaning: "The offer's machine is not registered with the control plane." },
  OFFER_NOT_VM_CAPABLE: {
    status: 422,
    meaning: "The template is a virtual machine, and the offer's machine cannot run those.",
  },
  OFFER_TOO_EXPENSIVE: {
    status: 409,
    meaning: 'The offer costs more than max_gpu_per_hour_micro or max_disk_per_hour_micro allows.',
    extra: {
      gpu_per_hour_micro: micro('What an hour of its GPUs costs'),
      disk_per_hour_micro: micro('What an hour of the disk costs while the instance is stopped'),
    },
  },
  OFFER_UNAVAILABLE: { status: 409, meaning: 'The offer is unknown, withdrawn or not available now.' },
  ORG_MISMATCH: { status: 403, meaning: 'X-Org-Id names an organization that the credential does not belong to.' },
  ORGANIZATION_NOT_FOUND: { status: 404, meaning: 'No organization has this id.' },
  ORGANIZATION_SUSPENDED: {
    status: 403,
    meaning:
      'An operator has suspended the organization, and said why: it cannot deploy, start instances or invite people. It can read, pay and destroy.',
    extra: { reason: text('Why the operator has suspended it') },
  },
  OWN_ACCOUNT: { status: 409, meaning: 'Operators do not remove their own accounts; another operator can.' },
  PASSKEYS_OFF: {
    status: 409,
    meaning: 'This control plane takes no passkeys, because it has no public address with https and a name.',
  },
  PASSWORD_OFF: {
    status: 403,
    meaning: "The company has switched passwords off for this e-mail address: sign in with the company's sign-in.",
  },
  PAYLOAD_TOO_LARGE: { status: 413, meaning: 'The body is too large.' },
  PAYMENTS_FROZEN: { status: 402, meaning: 'A payment dispute on the organization is open.' },
  PROOF_REQUIRED: {
    status: 403,
    meaning:
      'The last proof of who uses this session is older than 15 minutes; prove it again with POST /v1/me/proof, and repeat the request.',
  },
  QUARANTINE_NOT_FOUND: { status: 404, meaning: 'No workload in quarantine has this id.' },
  ROLLOUT_NOT_FOUND: { status: 404, meaning: 'No rollout has this id.' },
  RATE_LIMITED: {
    status: 429,
    meaning: 'Too many requests from this address, with this credential, or for this account; see Retry-After.',
    extra: { retry_after_seconds: integer('How many seconds to wait before the next try') },
  },
  REMOVAL_NOT_FOUND: { status: 404, meaning: "Nobody has asked for the removal of this user's second factors." },
  REQUEST_TIMEOUT: { status: 408, meaning: 'The request did not arrive in time.' },
  SECOND_FACTOR_REQUIRED: {
    status: 403,
    meaning:
      'At the sign-in and at a proof: the password is right, and the user has a second factor, which must be given, too. Elsewhere: the organization, or the control plane of its operators, demands a second factor of this session.',
    extra: optional({
      factor_token: text('At the sign-in: what to send with the second factor'),
      expires_at: timestamp('At the sign-in: until when `factor_token` works'),
      factors: list(
        choice(['totp', 'passkey'], '`totp`: an authenticator app'),
        'Which kinds of second factors the user has; a recovery code is taken instead of each',
      ),
    }),
  },
  ROLE_NOT_ALLOWED: {
    status: 403,
    meaning:
      'The role of the user in the organization does not allow this; an admin can give them one of allowed_roles.',
    extra: {
      role: text('The role of the user'),
      allowed_roles: list(Type.String(), 'The roles that allow this'),
    },
  },
  SESSION_NOT_FOUND: { status: 404, meaning: 'The user has no session with this id.' },
  SIGNATURE_INVALID: {
    status: 400,
    meaning: 'The webhook event was not signed with the configured secret, or was signed too long ago.',
  },
  SLOW_DOWN: {
    status: 400,
    meaning: 'The program asks too often whether its sign-in was approved.',
    extra: { interval: integer('How many seconds to wait between two questions from now on') },
  },
  SPEND_LIMIT_REACHED: {
    status: 402,
    meaning:
      'A cap of the organization or of the API key, or a limit of the instance itself, is used up or leaves less than five minutes of GPU time, or the request would burn more per hour than a cap allows. Or an API key with caps would loosen the limits of an instance that it has not started.',
    extra: {
      cap: choice(
        [...CAP_KINDS, 'max_charge', 'stop_at'],
        'Which cap of the organization or API key it is, or which limit of the instance',
      ),
      limit_micro: nullable(micro('The cap or limit; null for `stop_at`')),
      burn_per_hour_micro: micro('What one hour would cost of everything that counts for it'),
    },
  },
  SSH_KEY_EXISTS: { status: 409, meaning: 'The user has this SSH key already.' },
  SSH_KEY_NOT_FOUND: { status: 404, meaning: 'No SSH key that this credential can use or remove has this id.' },
  START_REFUSED: {
    status: 409,
    meaning: 'The host refused the start, or no longer holds the workload; the message says which.',
  },
  START_UNAVAILABLE: { status: 503, meaning: 'The start could not be completed right now; retry shortly.' },
  STREAM_LIMIT_REACHED: {
    status: 409,
    meaning:
      'The credential, its user, or all credentials of the organization together, have as many streams of events open as allowed.',
    extra: { limit },
  },
  TEMPLATE_ARCH_UNSUPPORTED: { status: 422, meaning: 'The template needs hardware other than x86_64.' },
  TEMPLATE_COMING_SOON: { status: 422, meaning: "The template's image is not published yet." },
  TEMPLATE_CUDA_TOO_NEW: {
    status: 422,
    meaning: 'The template supports CUDA only up to its cuda_max, and the machine has a newer version.',
  },
  TEMPLATE_CUDA_TOO_OLD: {
    status: 422,
    meaning: 'The template needs at least the CUDA version in its cuda_min, and the machine has an older one.',
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
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    meaning: 'Bodies are JSON (Content-Type: application/json), without a Content-Encoding.',
  },
  USER_NOT_FOUND: { status: 404, meaning: 'No user has this id.' },
  VALIDATION_FAILED: {
    status: 422,
    meaning: 'A field or parameter is not valid; details names it.',
    extra: { details: Details },
  },
  WEBHOOK_DELIVERY_NOT_FOUND: {
    status: 404,
    meaning: 'No webhook endpoint of the organization has a delivery with this id.',
  },
  WEBHOOK_DISABLED: { status: 409, meaning: 'The webhook endpoint is switched off; switch it on first.' },
  WEBHOOK_ENDPOINT_NOT_FOUND: { status: 404, meaning: 'No webhook endpoint of the organization has this id.' },
};
