import { floorsAfterProgress, windowAfter } from '../../domain/money/charge-window.js';
import type { InstanceErrorCode } from '../../domain/instances/instance-codes.js';
import { assertTransition, isUp, type InstanceStatus } from '../../domain/instances/instance-state.js';
import { query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { switchMeter } from '../metering/meters.js';
import { abridgeSnapshot } from '../catalogue/stored-template.js';
import type { Instance } from './queries.js';
import { recordTransition, type Reason } from '../events/timeline.js';
import { dropSchedule } from './schedules.js';

/** Columns that use cases do not write by themselves. Only clock steps shift some of them, and held GPUs end `release_gpus_at`. */
type Guarded =
  | 'id'
  | 'status'
  | 'status_changed_at'
  | 'started_at'
  | 'destroyed_at'
  | 'charge_from'
  | 'charge_to'
  | 'release_gpus_at';
export type InstanceChanges = Partial<Omit<Instance, Guarded | 'error_code'>> & {
  error_code?: InstanceErrorCode | null;
};

/**
 * Changes the status of an instance; nothing else writes it. Checks that the change is allowed, sets the times, clears addresses that
 * no longer answer, switches the meter, and records the event with its reason. A destroy ends the schedule. For a change to `running`,
 * `upSince` is when the workload's process started. Throws if the change is not allowed or the row has another status by now.
 */
export function transition(
  tx: Tx,
  instance: Instance,
  to: InstanceStatus,
  reason: Reason,
  changes: InstanceChanges = {},
  upSince = tx.now,
): Instance {
  assertTransition(instance.status, to);
  const next: Instance = {
    ...instance,
    ...(isUp(to) ? {} : { ssh_host: null, ssh_port: null, jupyter_url: null, open_url: null, ssh_ready_at: null }),
    ...changes,
    status: to,
    status_changed_at: tx.now,
    progress_at: tx.now,
    started_at: to === 'running' ? (instance.started_at ?? upSince) : instance.started_at,
    destroyed_at: to === 'destroyed' ? tx.now : null,
    ...(to === 'destroyed' ? keptOfDestroyed(instance) : {}),
    ...windowAfter(instance, instance.status, to, tx.now),
    release_gpus_at: releaseAt(instance, to, tx.now),
  };
  write(tx, instance, next);
  switchMeter(tx, instance.status, next, upSince);
  recordTransition(tx, next, instance.status, reason);
  if (to === 'destroying') dropSchedule(tx, next.id);
  if (to === 'destroyed') tx.count({ what: 'destroyed' });
  return next;
}

/** Returns what a destroyed instance keeps for good: no secret, and few bytes. */
function keptOfDestroyed({ template_snapshot }: Instance): Partial<Instance> {
  return {
    workload_encrypted: null,
    access_token_encrypted: null,
    template_snapshot: abridgeSnapshot(template_snapshot),
  };
}

/** Returns when a stopped instance must release its GPUs: the time that its offer allows, counted from this stop; null: never. */
function releaseAt({ release_stopped_after_ms }: Instance, to: InstanceStatus, now: number): number | null {
  return to === 'stopped' && release_stopped_after_ms !== null ? now + release_stopped_after_ms : null;
}

/** Sets `started_at` of an instance that was never `running`, because a run that began at `at` is charged. */
export function noteStarted(tx: Tx, instance: Instance, at: number): Instance {
  if (instance.started_at !== null) return instance;
  const next = { ...instance, started_at: at };
  write(tx, instance, next);
  return next;
}

/** Opens the charge window when a provision or start is sent for the first time, because no run can have begun before. */
export function openChargeWindow(tx: Tx, instanceId: string): void {
  tx.run(updateRows('instances', { charge_from: tx.now, charge_to: null }, { id: instanceId }));
}

/**
 * Notes that the host reports progress of a provision or start: nothing that it says later takes the run to have begun long before.
 * Progress extends the time-out only of a provision.
 */
export function noteProgress(tx: Tx, instance: Instance): void {
  if (instance.status !== 'creating' && instance.status !== 'starting') return;
  const extended = instance.status === 'creating' ? { progress_at: tx.now } : {};
  write(tx, instance, { ...instance, ...extended, ...floorsAfterProgress(instance, tx.now) });
}

/**
 * Closes the charge windows of a machine that is declared lost: runs that began before are not charged, even if the host reports them
 * later.
 */
export function closeChargeWindows(tx: Tx, machineId: string): void {
  const instances = query.updateTable('instances').set({ charge_from: null }).where('machine_id', '=', machineId);
  tx.run(instances.where('status', '<>', sql.lit('destroyed')));
}

/** The changes that clear the error of an instance. */
export const NO_ERROR = { error_code: null, error_message: null };

/** Moves an instance to `error`, with the reason on the instance and in its timeline. */
export function fail(
  tx: Tx,
  instance: Instance,
  error_code: InstanceErrorCode,
  error_message: string,
  changes: InstanceChanges = {},
): Instance {
  const reason: Reason = { kind: error_code, message: error_message };
  return transition(tx, instance, 'error', reason, { ...changes, error_code, error_message });
}

/** Changes columns of an instance, but not its status. */
export function amend(tx: Tx, instance: Instance, changes: InstanceChanges): Instance {
  const next = { ...instance, ...changes };
  write(tx, instance, next);
  return next;
}

/** Restarts the time-outs of all instances that have one, because their times are from before the clock was set. */
export function restartDeadlines(tx: Tx): void {
  tx.run(
    query
      .updateTable('instances')
      .set({ progress_at: tx.now })
      .where('status', '<>', sql.lit('destroyed'))
      .where('status', 'in', ['creating', 'starting', 'stopping', 'error']),
  );
}

/** Writes only the changed columns, so that others' writes in the same transaction stay. Throws if the status has changed. */
function write(tx: Tx, before: Instance, after: Instance): void {
  const names = (Object.keys(after) as (keyof Instance)[]).filter((name) => after[name] !== before[name]);
  if (names.length === 0) return;
  const changes = Object.fromEntries(names.map((name) => [name, after[name]]));
  const changed = tx.run(updateRows('instances', changes, { id: before.id, status: before.status }));
  if (changed !== 1) throw new Error(`instance ${before.id} is no longer ${before.status}`);
}
