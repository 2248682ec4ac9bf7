import type { Operator } from '../../domain/caller.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../audit.js';
import type { Instance } from '../instances/queries.js';
import { considerRelease } from '../instances/release.js';
import { getOrganization, type OrganizationRow } from '../accounts/organizations.js';
import type { Platform } from '../platform.js';

/**
 * Operators: a payment dispute freezes an organisation's payments until it is closed. Nothing is deployed or started, what runs
 * goes on, and the GPUs of what is stopped go back to the market. No money moves. Refuses with ORGANIZATION_NOT_FOUND.
 */
export function setDisputed(platform: Platform, operator: Operator, id: string, disputed: boolean): OrganizationRow {
  return platform.store.transact((tx) => {
    const organization = getOrganization(tx, id);
    const payments_frozen_at = disputed ? (organization.payments_frozen_at ?? tx.now) : null;
    tx.run(query.updateTable('organizations').set({ payments_frozen_at }).where('id', '=', id));
    for (const instance of stoppedOf(tx, id)) considerRelease(tx, platform.ids, instance);
    recordAudit(tx, operator, disputed ? 'dispute.open' : 'dispute.close', id);
    return { ...organization, payments_frozen_at };
  });
}

function stoppedOf(tx: Tx, organizationId: string): Instance[] {
  return tx.all(
    query
      .selectFrom('instances')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('status', '=', 'stopped'),
  );
}
