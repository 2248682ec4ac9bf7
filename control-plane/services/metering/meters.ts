import type { InstanceStatus } from '../../domain/instances/instance-state.js';
import type { Meter } from '../../domain/money/money.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, insertRow, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

export type IntervalRow = Row<'meter_intervals'>;

/** The fields of an instance that an interval needs. */
export type MeteredInstance = Pick<
  Row<'instances'>,
  'id' | 'organization_id' | 'machine_id' | 'status' | 'api_key_id' | 'run_key_id'
>;

/**
 * Intervals that are not yet charged or written off up to their end. The text must match the WHERE clause of the partial index.
 */
export const UNSETTLED = sql<boolean>`(closed_at IS NULL OR settled_to < closed_at)`;
/** GPU intervals that a host can still report usage for. The text must match the WHERE clause of the partial index. */
export const UNREPORTED = sql<boolean>`(meter = 'gpu' AND (closed_at IS NULL OR attested_to < closed_at))`;

type KnownRun = Pick<IntervalRow, 'run_id' | 'run_began_at' | 'run_not_before'>;

const NO_RUN: KnownRun = { run_id: null, run_began_at: null, run_not_before: null };
const METERS: Readonly<Partial<Record<InstanceStatus, Meter>>> = { running: 'gpu', stopped: 'disk' };

/**
 * Ends the meter of an instance's old status and opens the meter of its new one, in the transaction that changes the status. GPU
 * time counts from `upSince`.
 */
export function switchMeter(
  tx: Tx,
  before: InstanceStatus,
  instance: MeteredInstance & Pick<Row<'instances'>, 'run_not_before'>,
  upSince = tx.now,
): void {
  const [was, is] = [METERS[before], METERS[instance.status]];
  if (was !== undefined) closeMeter(tx, instance.id);
  const isAfterStop = before === 'stopping' && is === 'gpu';
  const { run_not_before } = instance;
  const run = (isAfterStop ? lastRun(tx, instance.id) : undefined) ?? { ...NO_RUN, run_not_before };
  // Where disks are paused, the hello that lists this one opens its meter.
  const isPaused = is === 'disk' && areDisksPaused(tx, instance.machine_id);
  if (is !== undefined && !isPaused) openMeter(tx, instance, is, run, is === 'gpu' ? upSince : tx.now, isAfterStop);
  if (instance.status === 'destroyed') dropUnreported(tx, 'instance_id', instance.id);
  settleSoon(tx, instance.organization_id);
}

function areDisksPaused(tx: Tx, machineId: string): boolean {
  return tx.get(pauseOf({ machineId }))?.disks_paused === 1;
}

const pauseOf = compileOnce(({ machineId }: { machineId: string }) =>
  query.selectFrom('machines').select('disks_paused').where('id', '=', machineId),
);

/** Returns the latest known run. After a stop that timed out, the run that should have stopped goes on. */
function lastRun(tx: Tx, instanceId: string): KnownRun | undefined {
  return tx.get(lastRunOf({ instanceId }));
}

const lastRunOf = compileOnce(({ instanceId }: { instanceId: string }) =>
  query
    .selectFrom('meter_intervals')
    .select(['run_id', 'run_began_at', 'run_not_before'])
    .where('instance_id', '=', instanceId)
    .where('run_began_at', 'is not', null)
    .orderBy('id', 'desc')
    .limit(sql.lit(1)),
);

/**
 * Opens an interval at `since`, but not before the end of the instance's last one, so that no time is metered twice. Does nothing if
 * an interval is open.
 */
export function openMeter(
  tx: Tx,
  instance: MeteredInstance,
  meter: Meter,
  run = NO_RUN,
  since = tx.now,
  isAfterStop = false,
): void {
  if (openInterval(tx, instance.id)) return;
  const { id: instance_id, organization_id, machine_id } = instance;
  const opened_at = Math.max(since, lastEnd(tx, instance.id));
  const times = { opened_at, closed_at: null, attested_to: opened_at, settled_to: opened_at };
  const after_stop = isAfterStop ? (1 as const) : (0 as const);
  const capped_key_id = cappedKeyOf(instance, meter);
  const interval = { instance_id, organization_id, machine_id, meter, capped_key_id, after_stop, ...times, ...run };
  tx.run(insertRow('meter_intervals', interval));
}

/** Returns the API key for whose caps a meter counts: GPU time for that of the run, disk for that of the deploy. */
export function cappedKeyOf(
  { api_key_id, run_key_id }: Pick<MeteredInstance, 'api_key_id' | 'run_key_id'>,
  meter: Meter,
): string | null {
  return meter === 'gpu' ? run_key_id : api_key_id;
}

function closeMeter(tx: Tx, instanceId: string): void {
  const interval = openInterval(tx, instanceId);
  if (interval) endInterval(tx, interval, tx.now);
}

/**
 * Ends an open interval: GPU time not before its attested time; disk time not before its settled time, and attested to the end.
 */
export function endInterval(tx: Tx, { id, meter, settled_to, attested_to }: IntervalRow, at: number): void {
  const closed_at = Math.max(at, meter === 'gpu' ? attested_to : settled_to);
  const ended = meter === 'gpu' ? { closed_at } : { closed_at, attested_to: closed_at };
  tx.run(updateRows('meter_intervals', ended, { id }));
}

/** Ends an open interval where the balance ran out (`at`), or where it is already settled. GPU time after that is not charged. */
export function cutInterval(tx: Tx, { id, attested_to, settled_to }: IntervalRow, at: number): void {
  const closed_at = Math.max(at, settled_to);
  const ended = { closed_at, attested_to: Math.min(attested_to, closed_at) };
  tx.run(updateRows('meter_intervals', ended, { id }));
}

/**
 * Returns the end of the instance's last interval. An end in the future dates from before the clock was set back, and is
 * ignored.
 */
function lastEnd(tx: Tx, instanceId: string): number {
  const end = tx.get(lastOf({ instanceId }))?.closed_at ?? -Infinity;
  return end > tx.now ? -Infinity : end;
}

const lastOf = compileOnce(({ instanceId }: { instanceId: string }) =>
  query
    .selectFrom('meter_intervals')
    .select('closed_at')
    .where('instance_id', '=', instanceId)
    .orderBy('id', 'desc')
    .limit(sql.lit(1)),
);

/** Returns the open interval of an instance, or undefined. */
export function openInterval(tx: Tx, instanceId: string): IntervalRow | undefined {
  return tx.get(openOf({ instanceId }));
}

const openOf = compileOnce(({ instanceId }: { instanceId: string }) =>
  query.selectFrom('meter_intervals').selectAll().where('instance_id', '=', instanceId).where('closed_at', 'is', null),
);

/** Ends intervals at their attested time, because no host will report the rest any more. The rest is never charged. */
export function dropUnreported(tx: Tx, whose: 'instance_id' | 'machine_id', id: string): void {
  tx.run(
    query
      .updateTable('meter_intervals')
      .set({ closed_at: sql`attested_to` })
      .where(whose, '=', id)
      .where(UNREPORTED),
  );
}

/** Lets the worker settle the organization as soon as this transaction is committed. */
export function settleSoon(tx: Tx, organizationId: string): void {
  tx.run(updateRows('organizations', { settle_at: tx.now }, { id: organizationId }));
  tx.nudge('settle');
}
