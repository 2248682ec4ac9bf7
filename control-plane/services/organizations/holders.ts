import type { Holder } from '../../domain/shared-total.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/**
 * Returns whose something is that an organization holds of a total which strangers share, with the network from which it was asked for.
 * An organization has paid if it ever got a payment, or a credit of an operator: so money comes where no provider takes payments.
 * Otherwise the person is the member who has been in it for longest.
 */
export function holderOf(tx: Tx, organizationId: string, network = ''): Holder {
  if (tx.get(moneyOf({ organizationId }))) return { hasPaid: true, person: organizationId, network };
  const person = tx.get(firstMemberOf({ organizationId }))?.user_id ?? organizationId;
  return { hasPaid: false, person, network };
}

const moneyOf = compileOnce(({ organizationId }: { organizationId: string }) =>
  query
    .selectFrom('transactions')
    .select(sql<number>`1`.as('found'))
    .where('organization_id', '=', organizationId)
    .where('kind', 'in', ['payment', 'credit'])
    .limit(sql.lit(1)),
);

const firstMemberOf = compileOnce(({ organizationId }: { organizationId: string }) =>
  query
    .selectFrom('memberships')
    .select('user_id')
    .where('organization_id', '=', organizationId)
    .orderBy('joined_at')
    .orderBy('user_id')
    .limit(sql.lit(1)),
);
