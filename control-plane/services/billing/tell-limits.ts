import { DAY_MS } from '../../../shared/time.js';
import type { Settlement } from '../../domain/settlement.js';
import { PERIODS, percentReached, periodAt, type Period } from '../../domain/spend-cap.js';
import { updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent, recordInstanceEvent } from '../events/record.js';
import { chargesFor, spendAfter } from './after-settlement.js';
import type { LoadedAccount, SettledInstance } from './load-accounts.js';
import type { Cap } from './load-limits.js';
import { spentIn } from './spent-days.js';

/**
 * Tells an organization once when 50, 80 and 100 percent of a limit or of a cap of the present day or month are used up. `account` is as it
 * was before this settlement: nothing is read.
 */
export function tellOfLimits(tx: Tx, account: LoadedAccount, settlement: Settlement): void {
  for (const instance of account.instances) tellOfCharge(tx, instance, spendAfter(instance, settlement));
  for (const { cap, days } of account.caps) {
    const spent = [...days, ...chargesFor(cap, account, settlement)];
    for (const period of PERIODS) tellOfPeriod(tx, cap, period, spentIn(spent, periodAt(period, tx.now)));
  }
}

function tellOfCharge(
  tx: Tx,
  { id, max_charge_micro, charge_told_percent }: SettledInstance,
  spent_micro: number,
): void {
  if (max_charge_micro === null) return;
  const percent = percentReached(spent_micro, max_charge_micro);
  if (percent <= (charge_told_percent ?? 0)) return;
  tx.run(updateRows('instances', { charge_told_percent: percent }, { id }));
  const words = { kind: 'charge_limit', message: `${percent} percent of max_charge_micro are used up` };
  recordInstanceEvent(tx, id, 'instance.charge_limit', words, { percent, limit_micro: max_charge_micro, spent_micro });
}

function tellOfPeriod(tx: Tx, cap: Cap, period: Period, spent_micro: number): void {
  const { id, organization_id, api_key_id } = cap;
  const limit_micro = cap[`${period}_micro`];
  if (limit_micro === null) return;
  const first = periodAt(period, tx.now).from / DAY_MS;
  const told = cap[`told_${period}`] === first ? (cap[`told_${period}_percent`] ?? 0) : 0;
  const percent = percentReached(spent_micro, limit_micro);
  if (percent <= told) return;
  tx.run(updateRows('spend_caps', { [`told_${period}`]: first, [`told_${period}_percent`]: percent }, { id }));
  const data = { api_key_id, period, percent, limit_micro, spent_micro };
  recordEvent(tx, organization_id, 'billing.spend_cap', `orgs/${organization_id}`, data);
}
