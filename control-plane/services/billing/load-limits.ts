import { DAY_MS, MINUTE_MS } from '../../../shared/time.js';
import { PERIODS, periodAt, periodsIn } from '../../domain/spend-cap.js';
import type { SpendLimit } from '../../domain/spend-limit.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, listIn, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** What limits need to know of a metered interval and its instance. */
export type LimitedInterval = Pick<
  Row<'instances'>,
  'organization_id' | 'stop_at' | 'max_charge_micro' | 'max_charge_from' | 'spend_micro' | 'api_key_id'
> & { instance_id: string; settled_to: number };

/** A settlement looks so far ahead: a day or month that begins meanwhile counts. */
const SETTLED_AHEAD_MS = MINUTE_MS;

type Cap = Row<'spend_caps'>;

/** Loads the limits and caps that concern unsettled intervals of some organizations, by organization. */
export function loadLimits(tx: Tx, intervals: readonly LimitedInterval[]): ReadonlyMap<string, SpendLimit[]> {
  const limits = new Map<string, SpendLimit[]>();
  const add = (organizationId: string, its: SpendLimit[]) =>
    limits.set(organizationId, [...(limits.get(organizationId) ?? []), ...its]);
  const instances = new Map(intervals.map((row) => [row.instance_id, row]));
  for (const row of instances.values()) add(row.organization_id, limitsOf(row));
  // Of limits that are used up in one millisecond, the narrower comes first.
  const caps = capsOn(tx, intervals).sort((a, b) => Number(a.api_key_id === null) - Number(b.api_key_id === null));
  for (const cap of caps) add(cap.organization_id, limitsOfCap(tx, cap, intervals));
  return limits;
}

function limitsOf({
  instance_id: instanceId,
  stop_at,
  max_charge_micro,
  max_charge_from,
  spend_micro,
}: LimitedInterval) {
  const its = { instanceIds: new Set([instanceId]), countsFrom: 0, to: Infinity };
  const limits: SpendLimit[] = [];
  if (stop_at !== null) limits.push({ ...its, name: { kind: 'stop_at', instanceId }, from: stop_at, leftMicro: null });
  if (max_charge_micro !== null) {
    const leftMicro = max_charge_micro - spend_micro;
    limits.push({ ...its, name: { kind: 'max_charge', instanceId }, from: max_charge_from ?? 0, leftMicro });
  }
  return limits;
}

/** Returns the caps on days and months of the organizations of these intervals, and of the API keys that deployed their instances. */
function capsOn(tx: Tx, intervals: readonly LimitedInterval[]): Cap[] {
  const ids = new Set(
    intervals.flatMap(({ organization_id, api_key_id }) => [organization_id, api_key_id ?? []].flat()),
  );
  return tx.all(capsAmong({ ids: JSON.stringify([...ids]) }));
}

const capsAmong = compileOnce(({ ids }: { ids: string }) =>
  query
    .selectFrom('spend_caps')
    .selectAll()
    .where('id', 'in', listIn(ids))
    .where((eb) => eb.or([eb('day_micro', 'is not', null), eb('month_micro', 'is not', null)])),
);

/** Returns a limit for each day and month in which an interval has time that is not settled. */
function limitsOfCap(tx: Tx, cap: Cap, all: readonly LimitedInterval[]): SpendLimit[] {
  const { api_key_id: apiKeyId } = cap;
  const own = all.filter((row) => row.organization_id === cap.organization_id);
  const its = apiKeyId === null ? own : own.filter((row) => row.api_key_id === apiKeyId);
  const first = Math.min(...its.map(({ settled_to }) => settled_to), tx.now);
  const instanceIds = apiKeyId === null ? null : new Set(its.map(({ instance_id }) => instance_id));
  const days = spentByDay(tx, cap, periodAt('month', first).from);
  return PERIODS.flatMap((kind) => {
    const most = kind === 'day' ? cap.day_micro : cap.month_micro;
    if (most === null) return [];
    const begin = cap[`${kind}_from`];
    const periods = periodsIn(kind, Math.max(first, begin), tx.now + SETTLED_AHEAD_MS);
    return periods.map(({ from, to }) => ({
      name: { kind, apiKeyId },
      instanceIds,
      countsFrom: from,
      from: Math.max(from, begin),
      to,
      leftMicro: most - spentIn(days, { from, to }),
    }));
  });
}

/** What was charged for use on a UTC day, in days since 1970. */
interface SpentDay {
  day: number;
  micro: number;
}

/** Returns what an organization or an API key has spent on each day from a time on. */
export function spentByDay(
  tx: Tx,
  { organization_id, api_key_id }: Pick<Cap, 'organization_id' | 'api_key_id'>,
  from: number,
): SpentDay[] {
  const first = Math.floor(from / DAY_MS);
  const days =
    api_key_id === null
      ? daysOfOrganization({ id: organization_id, first })
      : daysOfKey({ organizationId: organization_id, id: api_key_id, first });
  return tx.all(days).map(({ day, gpu_micro, disk_micro }) => ({ day, micro: gpu_micro + disk_micro }));
}

const daysOfOrganization = compileOnce(({ id, first }: { id: string; first: number }) =>
  query.selectFrom('organization_days').selectAll().where('organization_id', '=', id).where('day', '>=', first),
);

const daysOfKey = compileOnce(({ organizationId, id, first }: { organizationId: string; id: string; first: number }) =>
  query
    .selectFrom('charge_days')
    .select(['day', 'gpu_micro', 'disk_micro'])
    .where('organization_id', '=', organizationId)
    .where('grouped_by', '=', sql.lit('api_key'))
    .where('key', '=', id)
    .where('day', '>=', first),
);

/** Returns what was spent in a period of whole days, in micro-dollars. */
export function spentIn(days: readonly SpentDay[], { from, to }: { from: number; to: number }): number {
  const its = days.filter(({ day }) => day * DAY_MS >= from && day * DAY_MS < to);
  return its.reduce((sum, { micro }) => sum + micro, 0);
}
