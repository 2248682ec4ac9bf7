import { DAY_MS } from '../../../shared/time.js';
import { PERIODS, percentReached, periodAt, type Period } from '../../domain/spend-cap.js';
import type { SpendLimit } from '../../domain/spend-limit.js';
import type { Row } from '../../store/schema.js';
import { query, rowById, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent, recordInstanceEvent } from '../events/record.js';
import { spentByDay, spentIn } from './load-limits.js';

/** Tells an organization once when 50, 80 and 100 percent of a limit or of a cap of the present day or month are used up. */
export function tellOfLimits(tx: Tx, organizationId: string, limits: readonly SpendLimit[]): void {
  const caps = new Set<string>();
  for (const { name } of limits) {
    if (name.kind === 'max_charge') tellOfCharge(tx, name.instanceId);
    else if ('apiKeyId' in name) caps.add(name.apiKeyId ?? organizationId);
  }
  for (const id of caps) tellOfCap(tx, id);
}

function tellOfCharge(tx: Tx, instanceId: string): void {
  const instance = tx.get(rowById('instances', instanceId));
  if (instance?.max_charge_micro == null) return;
  const { spend_micro: spent_micro, max_charge_micro: limit_micro, charge_told_percent: told } = instance;
  const percent = percentReached(spent_micro, limit_micro);
  if (percent <= (told ?? 0)) return;
  tx.run(updateRows('instances', { charge_told_percent: percent }, { id: instanceId }));
  const words = { kind: 'charge_limit', message: `${percent} percent of max_charge_micro are used up` };
  recordInstanceEvent(tx, instanceId, 'instance.charge_limit', words, { percent, limit_micro, spent_micro });
}

function tellOfCap(tx: Tx, id: string): void {
  const cap = tx.get(query.selectFrom('spend_caps').selectAll().where('id', '=', id));
  if (!cap) return;
  const days = spentByDay(tx, cap, periodAt('month', tx.now).from);
  for (const period of PERIODS) tellOfPeriod(tx, cap, period, spentIn(days, periodAt(period, tx.now)));
}

function tellOfPeriod(tx: Tx, cap: Row<'spend_caps'>, period: Period, spent_micro: number): void {
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
