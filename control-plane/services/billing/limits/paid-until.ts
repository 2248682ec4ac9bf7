import type { PaidTime } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import { chargedPerHourMicro, countedFor } from '../../../domain/money/burn.js';
import { paidMs } from '../../../domain/money/paid-time.js';
import { isPeriod, periodAt } from '../../../domain/money/spend-cap.js';
import { compileOnce, query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';
import { findLiveRates, type LiveInstance } from '../../instances/queries.js';
import type { Core } from '../../system/platform.js';
import { findCaps } from './spend-check.js';

/**
 * Returns, in ms from now, for how long the instances on a machine that run or will run are paid by their organizations' balances, within
 * their limits.
 */
export function paidTimesOf(core: Core, machineId: string): PaidTime[] {
  return core.store.transact((tx) => {
    const instances = findUpOrStarting(tx, machineId);
    const organizations = new Set(instances.map(({ organization_id }) => organization_id));
    const paid = new Map([...organizations].map((id) => [id, accountOf(tx, id)]));
    return instances.map((instance) => {
      const account = paid.get(instance.organization_id);
      const times = account ? [account.lastsMs, ...ownLimits(instance, tx.now), ...capsOf(tx, instance, account)] : [0];
      return { instanceId: instance.id, paidMs: Math.min(...times) };
    });
  });
}

type UpOrStarting = ReturnType<typeof findUpOrStarting>[number];

function findUpOrStarting(tx: Tx, machineId: string) {
  return tx.all(upOrStarting({ machineId }));
}

const upOrStarting = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select([
      'id',
      'organization_id',
      'run_key_id',
      'price_per_hour_micro',
      'spend_micro',
      'stop_at',
      'max_charge_micro',
    ])
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed'))
    .where('status', 'in', ['creating', 'starting', 'running']),
);

interface PayingAccount {
  live: LiveInstance[];
  lastsMs: number;
}

function accountOf(tx: Tx, organizationId: string): PayingAccount {
  const { balance_micro } = getOrganization(tx, organizationId);
  const live = findLiveRates(tx, organizationId);
  return { live, lastsMs: paidMs(balance_micro, chargedPerHourMicro(live)) };
}

function ownLimits(
  { stop_at, max_charge_micro, spend_micro, price_per_hour_micro }: UpOrStarting,
  now: number,
): number[] {
  const charge = max_charge_micro === null ? [] : [paidMs(max_charge_micro - spend_micro, price_per_hour_micro)];
  return stop_at === null ? charge : [...charge, Math.max(stop_at - now, 0)];
}

/** Returns for how long each cap lasts that is used up in its present period, or in the next one. */
function capsOf(tx: Tx, { organization_id, run_key_id }: UpOrStarting, { live }: PayingAccount): number[] {
  return findCaps(tx, { organizationId: organization_id, apiKeyId: run_key_id }).flatMap(({ cap, spentMicro }) => {
    const { kind, amount_micro: most } = cap;
    if (!isPeriod(kind)) return [];
    const perHour = chargedPerHourMicro(countedFor(cap.api_key_id, live));
    const present = periodAt(kind, tx.now);
    const lastsMs = paidMs(most - spentMicro, perHour);
    if (tx.now + lastsMs < present.to) return [lastsMs];
    const next = periodAt(kind, present.to);
    const wholeMs = paidMs(most, perHour);
    return wholeMs < next.to - next.from ? [present.to - tx.now + wholeMs] : [];
  });
}
