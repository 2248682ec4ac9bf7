import type { InstanceStatus } from '../../../domain/instances/instance-state.js';
import {
  balanceDanger,
  diskDanger,
  isNews,
  nextDiskWarning,
  warnedDiskHours,
  warnedHours,
  type Danger,
} from '../../../domain/money/warning.js';
import { compileOnce, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';
import { recordEvent } from '../../events/record.js';
import type { Platform } from '../../system/platform.js';
import { loadAccounts, type LoadedAccount } from '../limits/load-accounts.js';

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
  const hours = warnedHours(account, warned, danger, tx.now);
  if (hours !== warned) tx.run(updateRows('organizations', { balance_low_hours: hours }, { id }));
}

/** Warns an organization 24, 6 and 1 hour before its disks are destroyed, each time once until they are safe again. */
export function warnOfDisks(platform: Platform, tx: Tx, id: string): void {
  const { exhausted_since, balance_micro, settle_at, disks_at_risk_hours: warned } = getOrganization(tx, id);
  const instances = exhausted_since === null ? 0 : countAtRisk(tx, id);
  const account = instances > 0 ? loadAccounts(platform, tx, [id]).get(id) : undefined;
  const danger: Danger | null = account ? diskDanger(account, exhausted_since, tx.now) : null;
  if (isNews(warned, danger)) {
    const data = { balance_micro, hours: danger.hours, destroyed_at: new Date(danger.at).toISOString(), instances };
    recordEvent(tx, id, 'billing.disks_at_risk', `orgs/${id}`, data);
  }
  const hours = account ? warnedDiskHours(account, exhausted_since, warned, tx.now) : null;
  if (hours !== warned) tx.run(updateRows('organizations', { disks_at_risk_hours: hours }, { id }));
  // Where nothing is metered, such as a disk in error, no settlement would come by itself.
  const next = danger && nextDiskWarning(danger);
  if (settle_at === null && next !== null) tx.run(updateRows('organizations', { settle_at: next }, { id }));
}

const AT_RISK: readonly InstanceStatus[] = ['stopped', 'error'];

function countAtRisk(tx: Tx, organizationId: string): number {
  return tx.get(atRiskOf({ organizationId }))?.count ?? 0;
}

const atRiskOf = compileOnce(({ organizationId }: { organizationId: string }) =>
  query
    .selectFrom('instances')
    .where('organization_id', '=', organizationId)
    .where('status', '<>', sql.lit('destroyed'))
    .where('status', 'in', AT_RISK)
    .select(({ fn }) => fn.countAll<number>().as('count')),
);
