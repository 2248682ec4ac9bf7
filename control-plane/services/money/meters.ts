import type { InstanceStatus } from '../../domain/instance-state.js';
import type { Meter } from '../../domain/money.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

export type IntervalRow = Row<'meter_intervals'>;

/** What an interval is opened for. */
type MeteredInstance = Pick<Row<'instances'>, 'id' | 'organization_id' | 'machine_id' | 'status'>;

type KnownRun = Pick<IntervalRow, 'run_id' | 'run_began_at'>;

const NO_RUN: KnownRun = { run_id: null, run_began_at: null };
const METERS: Readonly<Partial<Record<InstanceStatus, Meter>>> = { running: 'gpu', stopped: 'disk' };

/** A status has changed: what was metered in the old one ends, what is metered in the new one begins, in the same transaction. */
export function switchMeter(tx: Tx, before: InstanceStatus, instance: MeteredInstance): void {
  const [was, is] = [METERS[before], METERS[instance.status]];
  if (was !== undefined) closeMeter(tx, instance.id);
  if (is !== undefined) openMeter(tx, instance, is, before === 'stopping' ? lastRun(tx, instance.id) : undefined);
  if (instance.status === 'destroyed') forgetUnattested(tx, 'instance_id', instance.id);
  settleSoon(tx, instance.organization_id);
}

/** What goes on after a stop that timed out is the run that was told to stop. */
function lastRun(tx: Tx, instanceId: string): KnownRun | undefined {
  const runs = query.selectFrom('meter_intervals').select(['run_id', 'run_began_at']);
  const its = runs.where('instance_id', '=', instanceId).where('run_began_at', 'is not', null);
  return tx.get(its.orderBy('id', 'desc').limit(1));
}

/** Nothing of an instance is metered at a time at which it is metered already. */
export function openMeter(tx: Tx, instance: MeteredInstance, meter: Meter, run = NO_RUN): void {
  if (openInterval(tx, instance.id)) return;
  const { id: instance_id, organization_id, machine_id } = instance;
  const times = { opened_at: tx.now, closed_at: null, attested_to: tx.now, settled_to: tx.now };
  const interval = { instance_id, organization_id, machine_id, meter, ...times, ...run };
  tx.run(query.insertInto('meter_intervals').values(interval));
}

export function closeMeter(tx: Tx, instanceId: string): void {
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

/** The one that goes on. */
export function openInterval(tx: Tx, instanceId: string): IntervalRow | undefined {
  const its = query.selectFrom('meter_intervals').selectAll().where('instance_id', '=', instanceId);
  return tx.get(its.where('closed_at', 'is', null));
}

/** No host will speak any more of the GPU time that it has not attested yet: it is never charged. */
export function forgetUnattested(tx: Tx, whose: 'instance_id' | 'machine_id', id: string): void {
  tx.run(
    query
      .updateTable('meter_intervals')
      .set({ closed_at: sql`attested_to` })
      .where(whose, '=', id)
      .where('meter', '=', sql.lit('gpu'))
      .where(sql<boolean>`(closed_at IS NULL OR attested_to < closed_at)`),
  );
}

/**
 * A host has said which workloads it holds. Disk of a stopped instance is metered while its host has it: what is not there is
 * not charged for from where it was last settled.
 */
export function meterDisks(tx: Tx, machineId: string, held: ReadonlySet<string>): void {
  for (const instance of stoppedOn(tx, machineId)) {
    if (held.has(instance.id)) openMeter(tx, instance, 'disk');
    else {
      const interval = openInterval(tx, instance.id);
      if (interval) endInterval(tx, interval, interval.settled_to);
    }
    settleSoon(tx, instance.organization_id);
  }
}

/**
 * The disks of a machine that is declared lost, or removed, cost nothing from now on; where the store was restored and the host
 * has not been heard since, from where they were last settled.
 */
export function stopMeteringDisks(tx: Tx, machineId: string): void {
  const machine = tx.get(query.selectFrom('machines').select('is_ahead').where('id', '=', machineId));
  for (const { id, organization_id } of stoppedOn(tx, machineId)) {
    const interval = openInterval(tx, id);
    if (interval) endInterval(tx, interval, machine?.is_ahead ? interval.settled_to : tx.now);
    settleSoon(tx, organization_id);
  }
}

function stoppedOn(tx: Tx, machineId: string): MeteredInstance[] {
  return tx.all(
    query
      .selectFrom('instances')
      .select(['id', 'organization_id', 'machine_id', 'status'])
      .where('machine_id', '=', machineId)
      .where('status', '=', 'stopped'),
  );
}

/**
 * The wall clock was set by `ms`: what is not settled yet keeps its duration. Times that were settled before stay as they
 * were written.
 */
export function shiftMeters(tx: Tx, ms: number): void {
  const shifted = (column: string) => sql<number>`${sql.ref(column)} + ${ms}`;
  const live = query.selectFrom('instances').select('id').where('status', '<>', 'destroyed');
  const intervals = query.updateTable('meter_intervals').where('instance_id', 'in', live);
  const unsettled = sql<boolean>`(closed_at IS NULL OR settled_to < closed_at OR attested_to < closed_at)`;
  const times = { opened_at: shifted('opened_at'), closed_at: shifted('closed_at') };
  const known = { attested_to: shifted('attested_to'), settled_to: shifted('settled_to') };
  tx.run(intervals.set({ ...times, ...known }).where(unsettled));
  tx.run(intervals.set({ run_began_at: shifted('run_began_at') }));
  tx.run(query.updateTable('recent_entries').set({ at: shifted('at') }));
  tx.run(query.updateTable('organizations').set({ low_since: sql<number | null>`low_since + ${ms}` }));
  tx.run(query.updateTable('organizations').set({ settle_at: tx.now }).where('settle_at', 'is not', null));
}

/** Who is at or below zero has the full time until an automatic destruction anew: nobody could pay meanwhile. */
export function restartLowClocks(tx: Tx): void {
  tx.run(query.updateTable('organizations').set({ low_since: tx.now }).where('low_since', 'is not', null));
}

/** What is still to be charged or absorbed, or may become so. */
export const UNSETTLED = sql<boolean>`(interval.closed_at IS NULL OR interval.settled_to < interval.closed_at)`;

/** The organisation is settled as soon as this transaction is committed. */
export function settleSoon(tx: Tx, organizationId: string): void {
  tx.run(query.updateTable('organizations').set({ settle_at: tx.now }).where('id', '=', organizationId));
  tx.nudge('settle');
}
