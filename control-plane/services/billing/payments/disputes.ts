import { anOperator } from '../../../domain/act.js';
import type { Operator } from '../../../domain/caller.js';
import { query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization, type OrganizationRow } from '../../organizations/organizations.js';
import { recordEvent } from '../../events/record.js';
import { recordAct } from '../../system/acts.js';
import { recordAudit } from '../../system/audit.js';
import { instancesIn } from '../../instances/queries.js';
import { considerRelease } from '../../instances/release.js';
import type { Core } from '../../system/platform.js';

/**
 * Opens or closes a payment dispute for an operator. While one is open, the organization's payments are frozen: nothing can be
 * deployed or started, running instances go on, and the GPUs of stopped instances are released. No money moves. Closing lifts
 * every open dispute, also those that the payment provider reported. `reason` is for both audit logs. Refuses with
 * ORGANIZATION_NOT_FOUND.
 */
export function setDisputed(
  core: Core,
  operator: Operator,
  id: string,
  disputed: boolean,
  reason?: string,
): OrganizationRow {
  return core.store.transact((tx) => {
    const organization = getOrganization(tx, id);
    if (!disputed) {
      const open = query.updateTable('disputes').set({ state: 'lifted' }).where('organization_id', '=', id);
      tx.run(open.where('state', '=', sql.lit('open')));
    } else if (organization.payments_frozen_at === null) {
      const dispute = { id: tx.id(), organization_id: id, payment_id: null, state: 'open' as const };
      tx.run(query.insertInto('disputes').values({ ...dispute, amount_micro: 0, opened_at: tx.now, decided_at: null }));
    }
    const action = disputed ? 'dispute.open' : 'dispute.close';
    recordAudit(tx, operator, action, id, reason === undefined ? {} : { reason });
    recordAct(tx, id, anOperator(reason ?? null), action, `orgs/${id}`);
    return applyDisputeFreeze(tx, organization);
  });
}

/** Freezes payments while a dispute is open, and unfreezes them otherwise. Returns the changed organization. */
export function applyDisputeFreeze(tx: Tx, organization: OrganizationRow): OrganizationRow {
  const { id } = organization;
  const disputes = query.selectFrom('disputes').select('id').where('organization_id', '=', id);
  const isOpen = tx.get(disputes.where('state', '=', sql.lit('open'))) !== undefined;
  const payments_frozen_at = isOpen ? (organization.payments_frozen_at ?? tx.now) : null;
  tx.run(query.updateTable('organizations').set({ payments_frozen_at }).where('id', '=', id));
  if (isOpen !== (organization.payments_frozen_at !== null))
    recordEvent(tx, id, isOpen ? 'billing.payments_frozen' : 'billing.payments_unfrozen', `orgs/${id}`, {});
  for (const instance of instancesIn(tx, id, 'stopped')) considerRelease(tx, instance);
  return { ...organization, payments_frozen_at };
}
