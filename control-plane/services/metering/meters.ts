import type { InstanceStatus } from '../../domain/instance-state.js';
import type { Meter } from '../../domain/money.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

export type IntervalRow = Row<'meter_intervals'>;

/** What an interval is opened for. */
export type MeteredInstance = Pick<Row<'instances'>, 'id' | 'organization_id' | 'machine_id' | 'status'>;

/** What is still to be charged or absorbed, or may become so: in the words of the partial indexes. */
export const UNSETTLED = sql<boolean>`(closed_at IS NULL OR settled_to < closed_at)`;
/** GPU time of which a host may still speak. */
export const UNREPORTED = sql<boolean>`(meter = 'gpu' AND (closed_at IS NULL OR attested_to < closed_at))`;

type KnownRun = Pick<IntervalRow, 'run_id' | 'run_began_at'>;

const NO_RUN: KnownRun = { run_id: null, run_began_at: null };
const METERS: Readonly<Partial<Record<InstanceStatus, Meter>>> = { running: 'gpu', stopped: 'disk' };

/** A status has changed: what was metered in the old one ends, what is metered in the new one begins, in the same transaction. */
export function switchMeter(tx: Tx, before: InstanceStatus, instance: MeteredInstance, upSince = tx.now): void {
  const [was, is] = [METERS[before], METERS[instance.status]];
  if (was !== undefined) closeMeter(tx, instance.id);
  const isAfterStop = before === 'stopping' && is === 'gpu';
  const run = isAfterStop ? lastRun(tx, instance.id) : undefined;
  if (is !== undefined) openMeter(tx, instance, is, run, is === 'gpu' ? upSince : tx.now, isAfterStop);
  if (instance.status === 'destroyed') dropUnreported(tx, 'instance_id', instance.id);
  settleSoon(tx, instance.organization_id);
}

/** What goes on after a stop that timed out is the run that was told to stop. */
function lastRun(tx: Tx, instanceId: string): KnownRun | undefined {
  const runs = query.selectFrom('meter_intervals').select(['run_id', 'run_began_at']);
  const its = runs.where('instance_id', '=', instanceId).where('run_began_at', 'is not', null);
  return tx.get(its.orderBy('id', 'desc').limit(1));
}

/** Nothing of an instance is metered at a time at which it is metered already. */
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
  const interval = { instance_id, organization_id, machine_id, meter, after_stop, ...times, ...run };
  tx.run(query.insertInto('meter_intervals').values(interval));
}

function closeMeter(tx: Tx, instanceId: string): void {
  const interval = openInterval(tx, instanceId);
  if (interval) endInterval(tx, interval, tx.now);
}

/** Ends an interval that goes on; not before what was attested of GPU time. Disk is certain up to its end. */
export function endInterval(tx: Tx, { id, meter, settled_to, attested_to }: IntervalRow, at: number): void {
  const closed_at = Math.max(at, meter === 'gpu' ? attested_to : settled_to);
  const ended = meter === 'gpu' ? { closed_at } : { closed_at, attested_to: closed_at };
  tx.run(query.updateTable('meter_intervals').set(ended).where('id', '=', id));
}

/** Nothing is left to pay for GPU time after `at`: an interval that goes on ends there, or where it was settled to. */
export function cutInterval(tx: Tx, { id, attested_to, settled_to }: IntervalRow, at: number): void {
  const closed_at = Math.max(at, settled_to);
  const ended = { closed_at, attested_to: Math.min(attested_to, closed_at) };
  tx.run(query.updateTable('meter_intervals').set(ended).where('id', '=', id));
}

/** Up to when an instance was metered. What was settled before the clock was set back may lie in the future, and says nothing. */
function lastEnd(tx: Tx, instanceId: string): number {
  const its = query.selectFrom('meter_intervals').select('closed_at').where('instance_id', '=', instanceId);
  const end = tx.get(its.orderBy('id', 'desc').limit(1))?.closed_at ?? -Infinity;
  return end > tx.now ? -Infinity : end;
}

/** The one that goes on. */
export function openInterval(tx: Tx, instanceId: string): IntervalRow | undefined {
  const its = query.selectFrom('meter_intervals').selectAll().where('instance_id', '=', instanceId);
  return tx.get(its.where('closed_at', 'is', null));
}

/** No host will speak any more of the GPU time that it has not attested yet: it is never charged. */
export function dropUnreported(tx: Tx, whose: 'instance_id' | 'machine_id', id: string): void {
  tx.run(
    query
      .updateTable('meter_intervals')
      .set({ closed_at: sql`attested_to` })
      .where(whose, '=', id)
      .where(UNREPORTED),
  );
}

/** The organization is settled as soon as this transaction is committed. */
export function settleSoon(tx: Tx, organizationId: string): void {
  tx.run(query.updateTable('organizations').set({ settle_at: tx.now }).where('id', '=', organizationId));
  tx.nudge('settle');
}
