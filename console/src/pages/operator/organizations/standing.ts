import type { OperatedOrganization } from '../models.js';

/** Returns how an organization stands: a shape and its words. */
export function standing({
  suspension,
  payments_frozen,
}: Pick<OperatedOrganization, 'suspension' | 'payments_frozen'>) {
  if (suspension !== null) return { shape: 'square', words: 'suspended' } as const;
  if (payments_frozen) return { shape: 'half', words: 'disputes a payment' } as const;
  return { shape: 'dot', words: 'may rent' } as const;
}
