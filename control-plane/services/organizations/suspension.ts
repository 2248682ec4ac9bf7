import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from './organizations.js';

/** Returns the refusal ORGANIZATION_SUSPENDED if an operator has suspended the organization. */
export function refusalOfSuspension({
  suspended_at,
  suspended_reason,
}: Pick<Row<'organizations'>, 'suspended_at' | 'suspended_reason'>): Refusal | undefined {
  if (suspended_at === null) return undefined;
  const reason = suspended_reason ?? '';
  return new Refusal(
    'ORGANIZATION_SUSPENDED',
    `an operator has suspended this organization: ${reason}. You can read, pay and destroy; ask the operator to restore it`,
    { reason },
  );
}

/** Refuses with ORGANIZATION_SUSPENDED what a suspended organization must not do. */
export function checkNotSuspended(tx: Tx, organizationId: string): void {
  const refusal = refusalOfSuspension(getOrganization(tx, organizationId));
  if (refusal) throw refusal;
}

/** Makes the worker look at an organization in its next run, if it is suspended: it can have something that runs. */
export function lookAtSuspension(tx: Tx, organizationId: string): void {
  tx.run(
    statement(sql`UPDATE organizations SET suspension_look_at = ${tx.now}
      WHERE id = ${organizationId} AND suspended_at IS NOT NULL`),
  );
}
