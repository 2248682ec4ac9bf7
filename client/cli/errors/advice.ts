const LOG_IN = 'Sign in: gpurent login';
const OTHER_OFFER = 'Choose another offer: gpurent offers';

/** What helps after an error of the API, by its code. */
const BY_CODE: Readonly<Record<string, string>> = {
  ACCESS_DENIED: LOG_IN,
  ADMIN_REQUIRED: 'Ask an admin of the organization, or sign in as one: gpurent login. An API key never suffices.',
  API_KEY_ADDRESS: 'Use this key from an address that it allows.',
  API_KEY_READ_ONLY: 'Use a key that may change something: gpurent keys create.',
  CAPACITY_UNAVAILABLE: 'Try again later, or destroy the instance and deploy another one.',
  DISK_TOO_LARGE: 'Give a smaller --disk, or choose another offer: gpurent offers',
  EXPIRED_TOKEN: LOG_IN,
  HOST_UNREACHABLE: 'Try again later: the machine of the instance is not connected.',
  INSTANCE_LIMIT_REACHED: 'Destroy an instance that you no longer need: gpurent ls',
  INSTANCE_NOT_FOUND: 'List your instances: gpurent ls',
  INSUFFICIENT_BALANCE: 'Add credit, or choose a cheaper offer. Your balance: gpurent cost',
  INVALID_STATE: 'See what is allowed now: gpurent show INSTANCE',
  MACHINE_DISK_EXHAUSTED: 'Give a smaller --disk, or choose another offer: gpurent offers',
  MACHINE_IN_MAINTENANCE: OTHER_OFFER,
  NOT_FOUND: 'Check the id. Commands for operators need the session of an operator.',
  OFFER_NOT_FOUND: OTHER_OFFER,
  OFFER_NOT_PINNABLE: OTHER_OFFER,
  OFFER_NOT_VM_CAPABLE: 'Choose an offer that can run virtual machines: gpurent offers --vm',
  OFFER_TOO_EXPENSIVE: 'Its price has risen: deploy again to see it, or choose another offer with gpurent offers',
  OFFER_UNAVAILABLE: OTHER_OFFER,
  ORG_MISMATCH: 'Choose an organization of yours: gpurent context org ORGANIZATION',
  PAYMENTS_FROZEN: 'A payment of your organization is disputed: ask your operator.',
  PROOF_REQUIRED: `Prove who you are, then repeat the command: echo '{"code": "123456"}' | gpurent api POST /v1/me/proof --input -`,
  RATE_LIMITED: 'Wait a little, then repeat the command.',
  ROLE_NOT_ALLOWED: 'Ask an admin of your organization for another role.',
  SPEND_LIMIT_REACHED: 'Raise the limit or cap, or wait until it begins anew: gpurent caps',
  SSH_KEY_NOT_FOUND: 'List your SSH keys: gpurent ssh-keys',
  START_UNAVAILABLE: 'Try again in a moment.',
  TEMPLATE_CUDA_TOO_NEW: OTHER_OFFER,
  TEMPLATE_CUDA_TOO_OLD: OTHER_OFFER,
  TEMPLATE_NOT_FOUND: 'List the templates: gpurent templates',
  TOKEN_INVALID: `${LOG_IN}. Some routes never take an API key.`,
  UNAVAILABLE: 'Try again in a moment.',
};

export const adviceFor = (code: string): string | null =>
  Object.hasOwn(BY_CODE, code) ? (BY_CODE[code] ?? null) : null;
