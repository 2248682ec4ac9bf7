import { burnPerHourMicro } from '../../domain/burn.js';
import { Refusal } from '../../domain/refusal.js';
import { PERIODS, periodAt } from '../../domain/spend-cap.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Instance, LiveInstance } from '../instances/queries.js';
import { usedUpLimit } from './enforce-limits.js';
import { spentByDay, spentIn } from './load-limits.js';

type Cap = Row<'spend_caps'>;

/**
 * Refuses with SPEND_LIMIT_REACHED what would burn more per hour than the organization or the deploying API key may, and anything while
 * a cap on the day or the month is used up. `live` are the instances of the organization, as they would be then.
 */
export function checkSpendCaps(
  tx: Tx,
  { organizationId, apiKeyId }: { organizationId: string; apiKeyId: string | null },
  live: readonly Omit<LiveInstance, 'id'>[],
): void {
  for (const id of apiKeyId === null ? [organizationId] : [organizationId, apiKeyId]) {
    const cap = tx.get(query.selectFrom('spend_caps').selectAll().where('id', '=', id));
    if (!cap) continue;
    const its = cap.api_key_id === null ? live : live.filter((one) => one.apiKeyId === id);
    checkCap(tx, cap, burnPerHourMicro(its));
  }
}

function checkCap(tx: Tx, cap: Cap, burn_per_hour_micro: number): void {
  const whose = cap.api_key_id === null ? 'the organization' : 'this API key';
  const most = cap.burn_per_hour_micro;
  if (most !== null && burn_per_hour_micro > most) {
    const message = `${whose} would spend more per hour than an admin allows; stop or destroy other instances, or ask an admin to raise the cap`;
    throw reached('burn_per_hour', message, most, burn_per_hour_micro);
  }
  const days = spentByDay(tx, cap, periodAt('month', tx.now).from);
  for (const period of PERIODS) {
    const limit = cap[`${period}_micro`];
    if (limit === null || spentIn(days, periodAt(period, tx.now)) < limit) continue;
    const message = `${whose} has spent what an admin allows for this ${period} (UTC); wait for the next one, or ask an admin to raise the cap`;
    throw reached(period, message, limit, burn_per_hour_micro);
  }
}

/** Refuses with SPEND_LIMIT_REACHED to start an instance whose own limit is used up. */
export function checkOwnLimit(instance: Instance, now: number, burn_per_hour_micro: number): void {
  const limit = usedUpLimit(instance, now);
  if (!limit) return;
  const field = limit.kind === 'stop_at' ? 'stop_at' : 'max_charge_micro';
  const message = `the limit ${field} of this instance is used up; change it with PATCH /v1/instances/${instance.id}`;
  throw reached(limit.kind, message, limit.kind === 'stop_at' ? null : instance.max_charge_micro, burn_per_hour_micro);
}

function reached(limit: string, message: string, limit_micro: number | null, burn_per_hour_micro: number): Refusal {
  return new Refusal('SPEND_LIMIT_REACHED', message, { limit, limit_micro, burn_per_hour_micro });
}
