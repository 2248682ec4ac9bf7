import { GRACE_MS } from '../../../domain/deadlines.js';
import { reach, type Interval, type Metered } from '../../../domain/money/metered.js';
import type { Account, Entry } from '../../../domain/money/settlement.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, listIn, query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { AgentConnections } from '../../connections/agent-connections.js';
import type { Platform } from '../../system/platform.js';
import { SILENCE_MS, certainTo } from '../../metering/usage-reports.js';
import { UNSETTLED } from '../../metering/meters.js';
import { SETTLED_AHEAD_MS, loadLimits, type LoadedLimits } from './load-limits.js';

/** What must be settled for an organization, what limits it, and of what it was warned. */
export interface LoadedAccount extends Account, LoadedLimits {
  balanceLowHours: number | null;
  disksAtRiskHours: number | null;
  /** Those that have something to settle, as they are before. */
  instances: readonly SettledInstance[];
}

/** What a settlement knows of an instance. */
export type SettledInstance = Pick<
  Row<'instances'>,
  'id' | 'spend_micro' | 'stop_at' | 'max_charge_micro' | 'charge_told_percent' | 'on_limit'
> & {
  /** Whether its disk is metered: it is stopped. */
  isStopped: boolean;
};

const NO_LIMITS: LoadedLimits = { limits: [], caps: [], hasEarlier: false };

/** Loads what must be settled for some organizations, by id, with a few statements for all of them. */
export function loadAccounts(platform: Platform, tx: Tx, ids: readonly string[]): ReadonlyMap<string, LoadedAccount> {
  const balances = tx.all(balancesOf({ ids: JSON.stringify(ids) }));
  const inGrace = platform.clock.monotonic() - platform.bootedAt < GRACE_MS;
  const circumstances = { connections: platform.connections, now: tx.now, inGrace };
  const rows = groupBy(findUnsettled(tx, ids), ({ organization_id }) => organization_id);
  const limits = loadLimits(tx, rows, (row) => reach(intervalOf(row, circumstances), tx.now + SETTLED_AHEAD_MS));
  const entries = groupBy(findEntries(tx, ids), ({ organization_id }) => organization_id);
  return new Map(
    balances.map(({ id, balance_micro, balance_low_hours, disks_at_risk_hours }) => {
      const account = {
        balanceMicro: balance_micro,
        entries: entries.get(id) ?? [],
        meters: metersOf(rows.get(id) ?? [], circumstances),
        ...(limits.get(id) ?? NO_LIMITS),
        instances: instancesOf(rows.get(id) ?? []),
        balanceLowHours: balance_low_hours,
        disksAtRiskHours: disks_at_risk_hours,
      };
      return [id, account];
    }),
  );
}

function instancesOf(rows: readonly IntervalWithRates[]): SettledInstance[] {
  return [...groupBy(rows, ({ instance_id }) => instance_id)].flatMap(([id, its]) => {
    const [first] = its;
    if (!first) return [];
    const { spend_micro, stop_at, max_charge_micro, charge_told_percent, on_limit } = first;
    const isStopped = its.some(({ meter, closed_at }) => meter === 'disk' && closed_at === null);
    return { id, spend_micro, stop_at, max_charge_micro, charge_told_percent, on_limit, isStopped };
  });
}

type IntervalWithRates = ReturnType<typeof findUnsettled>[number];

const balancesOf = compileOnce(({ ids }: { ids: string }) =>
  query
    .selectFrom('organizations')
    .select(['id', 'balance_micro', 'balance_low_hours', 'disks_at_risk_hours'])
    .where('id', 'in', listIn(ids)),
);

function findUnsettled(tx: Tx, organizations: readonly string[]) {
  return tx.all(unsettledOf({ ids: JSON.stringify(organizations) }));
}

const unsettledOf = compileOnce(({ ids }: { ids: string }) =>
  query
    .selectFrom('meter_intervals as interval')
    .innerJoin('instances', 'instances.id', 'interval.instance_id')
    .innerJoin('machines', 'machines.id', 'interval.machine_id')
    .selectAll('interval')
    .select([
      'price_per_hour_micro',
      'storage_price_per_gb_hour_micro',
      'instances.disk_gb',
      'gpu_settled_ms',
      'disk_settled_ms',
      'needs_resync',
      'stop_at',
      'max_charge_micro',
      'max_charge_from',
      'charge_told_percent',
      'on_limit',
      'spend_micro',
    ])
    .where('interval.organization_id', 'in', listIn(ids))
    .where(UNSETTLED)
    .orderBy('interval.id'),
);

function findEntries(tx: Tx, organizations: readonly string[]): (Entry & { organization_id: string })[] {
  return tx.all(entriesOf({ ids: JSON.stringify(organizations) }));
}

const entriesOf = compileOnce(({ ids }: { ids: string }) =>
  query
    .selectFrom('recent_entries')
    .select(['organization_id', 'amount_micro as amountMicro', 'at'])
    .where('organization_id', 'in', listIn(ids))
    .orderBy('at')
    .orderBy('id'),
);

interface Circumstances {
  connections: AgentConnections;
  now: number;
  /** Whether the control plane started less than two minutes ago, so that settlement waits for hosts to report. */
  inGrace: boolean;
}

function metersOf(rows: readonly IntervalWithRates[], its: Circumstances): Metered[] {
  const meters = groupBy(rows, ({ instance_id, meter }) => `${instance_id} ${meter}`);
  return [...meters.values()].flatMap((intervals) => {
    const [first] = intervals;
    if (!first) return [];
    const { instance_id: instanceId, meter } = first;
    const isGpu = meter === 'gpu';
    return {
      instanceId,
      meter,
      ratePerHourMicro: isGpu ? first.price_per_hour_micro : first.storage_price_per_gb_hour_micro * first.disk_gb,
      settledMs: isGpu ? first.gpu_settled_ms : first.disk_settled_ms,
      intervals: intervals.map((row) => intervalOf(row, its)),
    };
  });
}

function intervalOf(row: IntervalWithRates, its: Circumstances): Interval {
  return row.meter === 'gpu' ? gpuInterval(row, its) : diskInterval(row, its);
}

function gpuInterval(row: IntervalWithRates, { connections, now, inGrace }: Circumstances): Interval {
  const { id, settled_to: settledTo, closed_at: closedAt, capped_key_id: apiKeyId } = row;
  const attestedTo = certainTo(connections, now, row);
  const hasSpoken = now - attestedTo <= SILENCE_MS;
  const beyond = hasSpoken ? 'runs' : inGrace ? 'awaited' : 'silent';
  return { id, settledTo, attestedTo, closedAt, beyond, apiKeyId };
}

/**
 * Treats disk time as certain up to now. After a restore of the database, and after a time in which the control plane could not hear
 * the host by its own fault, it is certain only once a hello has listed the disks.
 */
function diskInterval(row: IntervalWithRates, { connections, now, inGrace }: Circumstances): Interval {
  const { id, settled_to: settledTo, closed_at: closedAt, capped_key_id: apiKeyId } = row;
  const its = { id, settledTo, closedAt, apiKeyId };
  if (row.needs_resync || !connections.disks.areKnown(row.machine_id))
    return { ...its, attestedTo: settledTo, beyond: inGrace ? 'awaited' : 'silent' };
  return { ...its, attestedTo: Math.max(Math.min(closedAt ?? now, now), settledTo), beyond: 'runs' };
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
