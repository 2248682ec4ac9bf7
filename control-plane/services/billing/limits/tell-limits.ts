import { DAY_MS } from '../../../../shared/time.js';
import type { Settlement } from '../../../domain/money/settlement.js';
import { percentReached, periodAt } from '../../../domain/money/spend-cap.js';
import { updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { PeriodCap } from '../../organizations/keys/cap-rows.js';
import { recordEvent, recordInstanceEvent } from '../../events/record.js';
import { chargesFor, spendAfter } from './after-settlement.js';
import type { LoadedAccount, SettledInstance } from './load-accounts.js';
import { spentIn } from './spent-days.js';

/**
 * Tells an organization once when 50, 80 and 100 percent of a limit or of a cap of the present day or month are used up. `account` is as it
 * was before this settlement: nothing is read.
 */
export function tellOfLimits(tx: Tx, account: LoadedAccount, settlement: Settlement): void {
  for (const instance of account.instances) tellOfCharge(tx, instance, spendAfter(instance, settlement));
  for (const { cap, days } of account.caps) {
    const spent = [...days, ...chargesFor(cap, settlement)];
    tellOfCap(tx, cap, spentIn(spent, periodAt(cap.kind, tx.now)));
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

function tellOfCap(tx: Tx, cap: PeriodCap, spent_micro: number): void {
  const { owner_id, kind: period, organization_id, api_key_id, amount_micro: limit_micro } = cap;
  const told_day = periodAt(period, tx.now).from / DAY_MS;
  const told = cap.told_day === told_day ? (cap.told_percent ?? 0) : 0;
  const percent = percentReached(spent_micro, limit_micro);
  if (percent <= told) return;
  tx.run(updateRows('spend_caps', { told_day, told_percent: percent }, { owner_id, kind: period }));
  const data = { api_key_id, period, percent, limit_micro, spent_micro };
  recordEvent(tx, organization_id, 'billing.spend_cap', `orgs/${organization_id}`, data);
}
