import { DAY_MS } from '../../../../shared/time.js';
import { periodAt, type Period } from '../../../domain/money/spend-cap.js';
import { compileOnce, sql, statement } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';

/** What was charged for use on a UTC day, in days since 1970. */
export interface SpentDay {
  day: number;
  micro: number;
}

/** Whose spending to read, from the day of a time on: what counts for the caps of an API key, or without one that of the organization. */
export interface SpentFrom {
  organizationId: string;
  apiKeyId: string | null;
  from: number;
}

/** Returns what organizations and API keys have spent on each day, by their ids. A day without charges is left out. */
export function spentByDays(tx: Tx, wanted: readonly SpentFrom[]): ReadonlyMap<string, SpentDay[]> {
  const days = new Map<string, SpentDay[]>();
  const listed = wanted.map(({ organizationId, apiKeyId, from }) => ({
    organizationId,
    apiKeyId,
    first: Math.floor(from / DAY_MS),
  }));
  const keys = listed.filter(({ apiKeyId }) => apiKeyId !== null);
  const organizations = listed.filter(({ apiKeyId }) => apiKeyId === null);
  const rows = [
    ...(organizations.length > 0 ? tx.all(daysOfOrganizations({ wanted: JSON.stringify(organizations) })) : []),
    ...(keys.length > 0 ? tx.all(daysOfKeys({ wanted: JSON.stringify(keys) })) : []),
  ];
  for (const { spender, day, micro } of rows) {
    const its = days.get(spender);
    if (its) its.push({ day, micro });
    else days.set(spender, [{ day, micro }]);
  }
  return days;
}

/** Returns what an organization or an API key has spent on each day. */
export function spentByDay(tx: Tx, wanted: SpentFrom): SpentDay[] {
  return spentByDays(tx, [wanted]).get(wanted.apiKeyId ?? wanted.organizationId) ?? [];
}

type SpenderDay = SpentDay & { spender: string };

const daysOfOrganizations = compileOnce(({ wanted }: { wanted: string }) =>
  statement<SpenderDay>(sql`
    SELECT organization_id AS spender, day, gpu_micro + disk_micro AS micro
    FROM json_each(${wanted}) CROSS JOIN organization_days
    WHERE organization_id = json_extract(value, '$.organizationId') AND day >= json_extract(value, '$.first')`),
);

const daysOfKeys = compileOnce(({ wanted }: { wanted: string }) =>
  statement<SpenderDay>(sql`
    SELECT api_key_id AS spender, day, micro
    FROM json_each(${wanted}) CROSS JOIN key_days
    WHERE api_key_id = json_extract(value, '$.apiKeyId') AND day >= json_extract(value, '$.first')`),
);

/** Returns when the earliest of the present periods of these kinds begins. */
export function earliestOf(periods: readonly Period[], now: number): number {
  return Math.min(...periods.map((period) => periodAt(period, now).from));
}

/** Returns what was spent in a period of whole days, in micro-dollars. */
export function spentIn(days: readonly SpentDay[], { from, to }: { from: number; to: number }): number {
  const its = days.filter(({ day }) => day * DAY_MS >= from && day * DAY_MS < to);
  return its.reduce((sum, { micro }) => sum + micro, 0);
}
