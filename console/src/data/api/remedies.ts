import { ApiError } from './api.js';

/** What a person can do about an error. */
export interface Remedy {
  words: string;
  href: string;
}

const REMEDIES: Readonly<Record<string, Remedy>> = {
  // Who may not pay reads there who may.
  INSUFFICIENT_BALANCE: { words: 'Add money, or see who may', href: '/billing?pay=true' },
  CHECKOUT_UNAVAILABLE: { words: 'Copy the id of your organization for the operator', href: '/team' },
  PAYMENTS_FROZEN: { words: 'See the disputed payments', href: '/billing?tab=transactions&kind=dispute' },
  SPEND_LIMIT_REACHED: { words: 'Look at your caps', href: '/billing' },
  ORGANIZATION_SUSPENDED: { words: 'Look at your organization', href: '/team' },
  SECOND_FACTOR_REQUIRED: { words: 'Add a second factor', href: '/account/second-factors' },
  INSTANCE_LIMIT_REACHED: { words: 'Destroy an instance that you no longer need', href: '/instances' },
  SSH_KEY_NOT_FOUND: { words: 'Add an SSH key', href: '/keys?add=ssh' },
  OFFER_UNAVAILABLE: { words: 'Choose another machine', href: '/market' },
  OFFER_NOT_PINNABLE: { words: 'Choose another machine', href: '/market' },
  OFFER_TOO_EXPENSIVE: { words: 'Choose another machine', href: '/market' },
  OFFER_NOT_VM_CAPABLE: { words: 'Choose another machine', href: '/market' },
  TEMPLATE_CUDA_TOO_NEW: { words: 'Choose another machine', href: '/market' },
  TEMPLATE_CUDA_TOO_OLD: { words: 'Choose another machine', href: '/market' },
  MACHINE_IN_MAINTENANCE: { words: 'Choose another machine', href: '/market' },
  MACHINE_DISK_EXHAUSTED: { words: 'Choose a smaller disk or another machine', href: '/market' },
  DISK_TOO_LARGE: { words: 'Choose a smaller disk or another machine', href: '/market' },
  TEMPLATE_NOT_FOUND: { words: 'Choose another template', href: '/templates' },
  TEMPLATE_COMING_SOON: { words: 'Choose another template', href: '/templates' },
  TEMPLATE_ARCH_UNSUPPORTED: { words: 'Choose another template', href: '/templates' },
  TEMPLATE_REQUIRES_OWNER: { words: 'Choose another template', href: '/templates' },
};

/** Returns what a person can do about an error of the API by its code; undefined: its message says all. */
export function remedyOf(error: unknown): Remedy | undefined {
  if (!(error instanceof ApiError)) return undefined;
  if (error.code === 'PROOF_REQUIRED') {
    const back = new URLSearchParams({ return_to: location.pathname + location.search });
    return { words: 'Show that it is you, then do it again', href: `/account/prove?${back.toString()}` };
  }
  return remedyOfCode(error.code);
}

/** Returns what a person can do about a refusal. */
export function remedyOfCode(code: string): Remedy | undefined {
  return REMEDIES[code];
}
