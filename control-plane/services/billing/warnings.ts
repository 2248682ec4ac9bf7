import type { InstanceStatus } from '../../domain/instance-state.js';
import { balanceDanger, diskDanger, isNews, warnedHours, type Danger } from '../../domain/warning.js';
import { query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../accounts/organizations.js';
import { recordEvent } from '../events/record.js';
import type { Platform } from '../system/platform.js';
import { loadAccounts, type LoadedAccount } from './load-accounts.js';

/** The shortest warning time: an organization without any balance has no other to come. */
const LAST_HOURS = 1;

/**
 * Warns an organization 24, 4 and 1 hour before its balance is used up, each time once until the balance lasts longer again. `account` is
 * as it was before this settlement.
 */
export function warnOfBalance(tx: Tx, id: string, account: LoadedAccount): void {
  const { balanceLowHours: warned } = account;
  const danger = balanceDanger(account, tx.now);
  if (isNews(warned, danger)) {
    const { balance_micro } = getOrganization(tx, id);
    const data = { balance_micro, hours: danger.hours, lasts_until: new Date(danger.at).toISOString() };
    recordEvent(tx, id, 'billing.balance_low', `orgs/${id}`, data);
  }
  const hours = account.balanceMicro <= 0 ? LAST_HOURS : warnedHours(account, warned, danger, tx.now);
  if (hours !== warned) tx.run(updateRows('organizations', { balance_low_hours: hours }, { id }));
}

/** Warns an organization 24, 6 and 1 hour before its disks are destroyed, each time once until they are safe again. */
export function warnOfDisks(platform: Platform, tx: Tx, id: string): void {
  const { exhausted_since, balance_micro, disks_at_risk_hours: warned } = getOrganization(tx, id);
  const account = loadAccounts(platform, tx, [id]).get(id);
  const instances = exhausted_since === null ? 0 : countAtRisk(tx, id);
  const danger: Danger | null = account && instances > 0 ? diskDanger(account, exhausted_since, tx.now) : null;
  if (isNews(warned, danger)) {
    const data = { balance_micro, hours: danger.hours, destroyed_at: new Date(danger.at).toISOString(), instances };
    recordEvent(tx, id, 'billing.disks_at_risk', `orgs/${id}`, data);
  }
  const hours = danger?.hours ?? null;
  if (hours !== warned) tx.run(updateRows('organizations', { disks_at_risk_hours: hours }, { id }));
}

const AT_RISK: readonly InstanceStatus[] = ['stopped', 'error'];

function countAtRisk(tx: Tx, organizationId: string): number {
  const its = query.selectFrom('instances').where('organization_id', '=', organizationId);
  const live = its.where('status', '<>', sql.lit('destroyed')).where('status', 'in', AT_RISK);
  return tx.get(live.select(({ fn }) => fn.countAll<number>().as('count')))?.count ?? 0;
}
