import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { recordEvent } from '../../events/record.js';
import { getOrganization } from '../../organizations/organizations.js';
import { instancesIn, type Instance } from '../../instances/queries.js';
import { considerRelease } from '../../instances/release.js';
import { cutInterval, openInterval } from '../../metering/meters.js';
import { requestStop } from '../../instances/requests.js';
import { isAskedAlready } from './asked-stops.js';

/**
 * Carries out what an organization's balance demands. If it ran out at `exhaustedAt`, running instances are stopped and charged no
 * further than that time. At or below zero, GPUs of stopped instances are released, and the time until automatic destruction
 * starts now, never earlier. Above zero, that time ends. A stop that has timed out and is still sent is not asked for again.
 */
export function enforceBalance(tx: Tx, organizationId: string, exhaustedAt: number | undefined): void {
  const unpaid = exhaustedAt === undefined ? [] : instancesIn(tx, organizationId, 'running');
  for (const instance of unpaid) if (!isAskedAlready(tx, instance)) stopUnpaid(tx, instance, exhaustedAt ?? tx.now);
  const { balance_micro, exhausted_since } = getOrganization(tx, organizationId);
  if (balance_micro > 0) return exhausted_since === null ? undefined : setLowSince(tx, organizationId, null);
  if (exhausted_since === null) {
    setLowSince(tx, organizationId, tx.now);
    recordEvent(tx, organizationId, 'billing.balance_exhausted', `orgs/${organizationId}`, { balance_micro });
  }
  for (const instance of instancesIn(tx, organizationId, 'stopped')) considerRelease(tx, instance);
}

function stopUnpaid(tx: Tx, instance: Instance, since: number): void {
  const interval = openInterval(tx, instance.id);
  if (interval) cutInterval(tx, interval, since);
  const message = 'the balance of the organization has run out; the instance is stopped';
  requestStop(tx, instance, { kind: 'out_of_balance', message });
}

function setLowSince(tx: Tx, id: string, exhausted_since: number | null): void {
  tx.run(query.updateTable('organizations').set({ exhausted_since }).where('id', '=', id));
}
