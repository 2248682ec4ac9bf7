import { CodedError } from '../../shared/coded-error.js';

/** Every error code of the API, other than those of the HTTP layer itself. */
export type RefusalCode =
  | 'ACCESS_DENIED'
  | 'ACCESS_UNSUPPORTED'
  | 'ADMIN_REQUIRED'
  | 'ALREADY_MEMBER'
  | 'API_KEY_ADDRESS'
  | 'API_KEY_NOT_FOUND'
  | 'API_KEY_READ_ONLY'
  | 'AUTHORIZATION_PENDING'
  | 'CAPACITY_UNAVAILABLE'
  | 'CHECKOUT_UNAVAILABLE'
  | 'COMPANY_SIGN_IN_INVALID'
  | 'COMPANY_SIGN_IN_REFUSED'
  | 'COOKIE_REFUSED'
  | 'DEVICE_CODE_INVALID'
  | 'DISK_TOO_LARGE'
  | 'EMAIL_TAKEN'
  | 'EVENTS_EXPIRED'
  | 'EXPIRED_TOKEN'
  | 'FACTOR_INVALID'
  | 'FACTOR_NOT_FOUND'
  | 'FACTOR_TOKEN_INVALID'
  | 'HOST_UNREACHABLE'
  | 'IDENTITY_NOT_FOUND'
  | 'IDENTITY_TAKEN'
  | 'INSTANCE_LIMIT_REACHED'
  | 'INSTANCE_NOT_FOUND'
  | 'INSUFFICIENT_BALANCE'
  | 'INVALID_CREDENTIALS'
  | 'INVALID_STATE'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'INVITATION_REQUIRED'
  | 'INVITE_NOT_FOUND'
  | 'ISSUER_NOT_FOUND'
  | 'ISSUER_TAKEN'
  | 'ISSUER_UNAVAILABLE'
  | 'LAST_ADMIN'
  | 'LAST_OPERATOR'
  | 'LAST_SIGN_IN'
  | 'LIMIT_REACHED'
  | 'LINK_INVALID'
  | 'MAIL_OFF'
  | 'MACHINE_DISK_EXHAUSTED'
  | 'MACHINE_IN_MAINTENANCE'
  | 'MACHINE_IN_USE'
  | 'MACHINE_NOT_FOUND'
  | 'MEMBER_NOT_FOUND'
  | 'NOT_FOUND'
  | 'OFFER_NOT_FOUND'
  | 'OFFER_NOT_PINNABLE'
  | 'OFFER_NOT_VM_CAPABLE'
  | 'OFFER_TOO_EXPENSIVE'
  | 'OFFER_UNAVAILABLE'
  | 'ORG_MISMATCH'
  | 'ORGANIZATION_NOT_FOUND'
  | 'ORGANIZATION_SUSPENDED'
  | 'OWN_ACCOUNT'
  | 'PASSKEYS_OFF'
  | 'PASSWORD_OFF'
  | 'PAYMENTS_FROZEN'
  | 'PROOF_REQUIRED'
  | 'QUARANTINE_NOT_FOUND'
  | 'RATE_LIMITED'
  | 'REMOVAL_NOT_FOUND'
  | 'ROLE_NOT_ALLOWED'
  | 'SECOND_FACTOR_REQUIRED'
  | 'ROLLOUT_NOT_FOUND'
  | 'SESSION_NOT_FOUND'
  | 'SIGNATURE_INVALID'
  | 'SLOW_DOWN'
  | 'SPEND_LIMIT_REACHED'
  | 'SSH_KEY_EXISTS'
  | 'SSH_KEY_NOT_FOUND'
  | 'START_REFUSED'
  | 'START_UNAVAILABLE'
  | 'STREAM_LIMIT_REACHED'
  | 'TEMPLATE_ARCH_UNSUPPORTED'
  | 'TEMPLATE_COMING_SOON'
  | 'TEMPLATE_CUDA_TOO_NEW'
  | 'TEMPLATE_CUDA_TOO_OLD'
  | 'TEMPLATE_NOT_FOUND'
  | 'TEMPLATE_REQUIRES_OWNER'
  | 'TOKEN_INVALID'
  | 'UNAVAILABLE'
  | 'USER_NOT_FOUND'
  | 'VALIDATION_FAILED'
  | 'WEBHOOK_DELIVERY_NOT_FOUND'
  | 'WEBHOOK_DISABLED'
  | 'WEBHOOK_ENDPOINT_NOT_FOUND';

/** A request that the rules turn down. Throwing it rolls the transaction back. The fields of `extra` join the error's body. */
export class Refusal extends CodedError<RefusalCode> {
  constructor(
    code: RefusalCode,
    message: string,
    readonly extra: Readonly<Record<string, unknown>> = {},
  ) {
    super(code, message);
  }
}

/**
 * Returns a VALIDATION_FAILED refusal for one field, in the same shape as a violation of the schema. An empty path means the whole
 * body.
 */
export function invalidField(path: string, message: string): Refusal {
  const described = path === '' ? message : `${path}: ${message}`;
  return new Refusal('VALIDATION_FAILED', described, { details: [{ path, message }] });
}
