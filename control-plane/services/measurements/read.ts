import type { Use } from '../../../shared/measurement.js';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import type { Caller } from '../../domain/caller.js';
import { KEPT_MS, mergeUses, type TimedUse } from '../../domain/instances/measurement.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOwnInstance } from '../instances/queries.js';
import { findMachine } from '../machines/machines.js';
import type { Core } from '../system/platform.js';
import { hoursOf, storedUses } from './keep.js';
import type { HasMeasurements } from './memory.js';
import type { HasMeasurementQueries } from './queries.js';

export const WINDOWS = ['1h', '24h', '90d'] as const;
export type Window = (typeof WINDOWS)[number];
const LENGTH_MS: Readonly<Record<Window, number>> = { '1h': HOUR_MS, '24h': DAY_MS, '90d': KEPT_MS.hour };

/** What an instance has used; the oldest first. */
export interface UseOfInstance {
  /** The length of each span. */
  resolution_seconds: number;
  uses: readonly TimedUse[];
}

/**
 * Returns what an instance of the caller's organization has used. The last hour comes from its host in steps of ten seconds, or from
 * the database in minutes if the host does not answer within five seconds. Refuses with INSTANCE_NOT_FOUND.
 */
export async function readUse(
  platform: Core & HasMeasurements & HasMeasurementQueries,
  caller: Caller,
  id: string,
  window: Window,
): Promise<UseOfInstance> {
  const instance = platform.store.transact((tx) => getOwnInstance(tx, caller, id));
  if (window === '1h' && instance.status !== 'destroyed') {
    const points = await platform.measurementQueries.points(instance);
    if (points?.length) return { resolution_seconds: 10, uses: points };
  }
  return platform.store.transact((tx) => useOf(platform, tx, instance.id, window));
}

/** Most instances of one machine that are shown: more than it can have with GPUs. */
const MOST_OF_MACHINE = 100;

/** Returns what the instances of a machine have used that are not destroyed. Refuses with MACHINE_NOT_FOUND. */
export function readUseOfMachine(
  core: Core & HasMeasurements,
  machineId: string,
  window: Window,
): (UseOfInstance & { instance_id: string })[] {
  return core.store.transact((tx) => {
    findMachine(tx, machineId);
    const live = query
      .selectFrom('instances')
      .select('id')
      .where('machine_id', '=', machineId)
      .where('status', '<>', sql.lit('destroyed'));
    return tx.all(live.limit(MOST_OF_MACHINE)).map(({ id }) => ({ instance_id: id, ...useOf(core, tx, id, window) }));
  });
}

function useOf(core: HasMeasurements, tx: Tx, instanceId: string, window: Window): UseOfInstance {
  const since = tx.now - LENGTH_MS[window];
  const unwritten = core.measurements.of(instanceId);
  const isInWindow = ({ at }: TimedUse) => at > since;
  const minutes = mergeUses(storedUses(tx, instanceId, 'minute', since), unwritten);
  if (window !== '90d') return { resolution_seconds: MINUTE_MS / 1_000, uses: minutes.filter(isInWindow) };
  // The present hour is not over.
  const recent = hoursOf(minutes).map(({ at, use }) => ({ at: Math.min(at, tx.now), use }));
  const hours = [...storedUses(tx, instanceId, 'hour', since), ...recent];
  return { resolution_seconds: HOUR_MS / 1_000, uses: hours.filter(isInWindow) };
}

/** Most instances whose present use one answer has, the newest first. */
const MOST_PRESENT = 1_000;

/** Returns what the running instances of an organization have used in their newest minute, as far as it was measured lately. */
export function presentUses(
  core: Core & HasMeasurements,
  { organizationId }: Caller,
): { id: string; label: string | null; use: Use }[] {
  const memory = core.measurements;
  const running = query
    .selectFrom('instances')
    .select(['id', 'label'])
    .where('organization_id', '=', organizationId)
    .where('status', '=', 'running')
    .where('status', '<>', sql.lit('destroyed'))
    .orderBy('created_at', 'desc')
    .limit(MOST_PRESENT);
  return core.store.transact((tx) =>
    tx.all(running).flatMap(({ id, label }) => {
      const use = memory.present(id);
      return use ? [{ id, label, use }] : [];
    }),
  );
}
