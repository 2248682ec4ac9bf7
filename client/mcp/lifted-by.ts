import type { ErrorCode } from '../api/index.js';

const ANOTHER_OFFER = 'Choose another offer with find_offers.';
const ASK_THE_OPERATOR = 'The operator of this marketplace has to lift it; ask the person to write to them.';

const LIFTED_BY: Partial<Record<ErrorCode, string>> = {
  API_KEY_ADDRESS: 'A key that is allowed from this address.',
  API_KEY_READ_ONLY: 'A key that is not read-only. Ask the person whether to use one.',
  CAPACITY_UNAVAILABLE: 'Wait until the GPUs are free, or deploy another instance.',
  HOST_UNREACHABLE: 'Try again once the machine is back.',
  IDEMPOTENCY_KEY_REUSED: 'Another idempotency_key: this one belongs to another deploy.',
  INSTANCE_LIMIT_REACHED: 'Destroy an instance that nobody needs, if the person agrees.',
  INSTANCE_NOT_FOUND: 'Take the id from list_instances.',
  INSUFFICIENT_BALANCE: 'The person has to add credit; `required_micro` says how much the balance must be.',
  INVALID_STATE: 'Look at `status` and `allowed_actions` with show_instance.',
  MACHINE_DISK_EXHAUSTED: `A smaller disk. ${ANOTHER_OFFER}`,
  MACHINE_IN_MAINTENANCE: ANOTHER_OFFER,
  OFFER_NOT_FOUND: ANOTHER_OFFER,
  OFFER_TOO_EXPENSIVE: ANOTHER_OFFER,
  OFFER_UNAVAILABLE: ANOTHER_OFFER,
  ORGANIZATION_SUSPENDED: ASK_THE_OPERATOR,
  PAYMENTS_FROZEN: ASK_THE_OPERATOR,
  RATE_LIMITED: 'Wait for `retry_after_seconds`, then ask less often.',
  SPEND_LIMIT_REACHED: 'A person who may set caps has to raise the one that `cap` names. Do not try to get around it.',
  TEMPLATE_CUDA_TOO_NEW: ANOTHER_OFFER,
  TEMPLATE_CUDA_TOO_OLD: ANOTHER_OFFER,
  TEMPLATE_NOT_FOUND: 'Take the id from list_templates.',
  TOKEN_INVALID: 'The credential has ended, or may not do this: the person has to sign in again or give another key.',
  UNAVAILABLE: 'Try again in a few seconds.',
  VALIDATION_FAILED: 'Correct the arguments that `details` names.',
};

/** Says what makes a refused request possible. */
export function liftedBy(code: string): string {
  return (LIFTED_BY as Record<string, string | undefined>)[code] ?? 'The message says what is wrong.';
}
