import { MINUTE_MS } from '../../../shared/time.js';
import { DEADLINES_MS, GRACE_MS } from '../../domain/deadlines.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { recordCommand } from '../instances/commands.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { undoStart } from '../instances/release.js';
import { fail, transition } from '../instances/transitions.js';
import { eventsOfKind, recordNote } from '../events/timeline.js';

const BATCH = 200;
/** The event that tells every five minutes that a host still tries to stop a workload. */
const STOP_ATTEMPT = 'stop_attempt';
const ATTEMPT_MS = 10 * MINUTE_MS;
/** For so long a host may earn after a stop that has timed out, whatever it says of its attempts. */
const EXCUSED_MS = 30 * MINUTE_MS;
const UNHEARD = 'the host has not reported that it tries to stop the workload';
const UNSUCCESSFUL =
  'the host says that it tries to stop the workload, and has reported half an hour more of use since';
/**
 * Applies time-outs. After a late stop the instance goes back to `running` while the stop is still sent; a late start is undone; a
 * provision without progress fails. Does nothing while an operator must confirm the clock, and in the first two minutes of a control
 * plane. Returns the number of instances that timed out.
 */
export function expireTransitions(platform: Platform): { expired: number } {
  if (!platform.clockSteps.isTrusted()) return { expired: 0 };
  if (platform.clock.monotonic() - platform.bootedAt < GRACE_MS) return { expired: 0 };
  const overdue = platform.store.transact((tx) => {
    cordonEarning(tx);
    return (Object.keys(DEADLINES_MS) as (keyof typeof DEADLINES_MS)[]).flatMap((status) => findOverdue(tx, status));
  });
  return {
    expired: forEachInOwnTransaction(platform, overdue, (tx, { id }) => expire(platform, tx, findInstance(tx, id))),
  };
}

function expire({ connections }: Platform, tx: Tx, instance: Instance | undefined): void {
  switch (instance?.status) {
    case 'stopping': {
      // The stop command stays open and is sent until the host has carried it out.
      const error_message = 'the host has not confirmed the stop within 30 minutes; the stop is still being sent';
      const reason = { kind: 'stop_timed_out', message: error_message } as const;
      transition(tx, instance, 'running', reason, { error_code: 'stop_timed_out', error_message });
      // A host that is not connected earns nothing by ignoring a stop, so its machine is not cordoned.
      if (connections.isConnected(instance.machine_id) && !hasTriedToStop(tx, instance)) cordon(tx, instance, UNHEARD);
      return;
    }
    case 'starting': {
      const error_message = 'the host has not started the workload within 10 minutes; the start is undone';
      const reason = { kind: 'start_timed_out', message: error_message } as const;
      return undoStart(
        tx,
        transition(tx, instance, 'stopped', reason, { error_code: 'start_timed_out', error_message }),
      );
    }
    case 'creating':
      return giveUpProvision(tx, instance, 'the host has made no progress for 30 minutes');
    default:
      return;
  }
}

/** Tells whether the host has reported an attempt to stop in the last ten minutes. Then it is not at fault for what it earns. */
function hasTriedToStop(tx: Tx, { id }: Instance): boolean {
  const recent = eventsOfKind(id, STOP_ATTEMPT).where('at', '>=', tx.now - ATTEMPT_MS);
  return tx.get(recent.limit(1)) !== undefined;
}

/** Cordons a machine that earns by ignoring a stop, until an operator has checked it. */
function cordon(tx: Tx, { id, machine_id }: Pick<Instance, 'id' | 'machine_id'>, why: string): void {
  const machines = query.updateTable('machines').set({ cordoned_at: tx.now }).where('id', '=', machine_id);
  if (tx.run(machines.where('cordoned_at', 'is', null)) > 0)
    recordNote(tx, id, 'machine_cordoned', `${why}; its machine is cordoned and takes nothing new`);
}

/**
 * Cordons machines that have earned half an hour by stops that timed out. Their hosts may say that they try: that is their word alone, and
 * they are paid by it. Once for each time-out: an operator who has looked at the machine can uncordon it.
 */
function cordonEarning(tx: Tx): void {
  for (const { instance_id } of tx.all(earningAfterStop)) {
    const instance = findInstance(tx, instance_id);
    if (instance?.status !== 'running') continue;
    const told = eventsOfKind(instance.id, 'machine_cordoned').where('at', '>=', instance.status_changed_at);
    if (tx.get(told.limit(1)) === undefined) cordon(tx, instance, UNSUCCESSFUL);
  }
}

/** Reads an index that has only intervals which are still open. A host can begin new ones with other runs. */
const openAfterStop = query
  .selectFrom('meter_intervals')
  .select('instance_id')
  .where('after_stop', '=', sql.lit(1))
  .where('closed_at', 'is', null);
const earningAfterStop = query
  .selectFrom('meter_intervals')
  .select('instance_id')
  .where('after_stop', '=', sql.lit(1))
  .where('instance_id', 'in', openAfterStop)
  .groupBy('instance_id')
  .having(sql<boolean>`sum(attested_to - opened_at) >= ${sql.lit(EXCUSED_MS)}`);

/** Moves an instance to `error` without its host's answer. A release command frees its GPUs once the host has confirmed. */
export function giveUpProvision(tx: Tx, instance: Instance, reason: string): void {
  recordCommand(tx, fail(tx, instance, 'provision_failed', reason), 'release');
}

function findOverdue(tx: Tx, status: keyof typeof DEADLINES_MS): { id: string }[] {
  return tx.all(overdue({ status, before: tx.now - DEADLINES_MS[status] }));
}

const overdue = compileOnce(({ status, before }: { status: keyof typeof DEADLINES_MS; before: number }) =>
  query
    .selectFrom('instances')
    .select('id')
    .where('status', '<>', sql.lit('destroyed'))
    .where('status', '=', status)
    .where('progress_at', '<=', before)
    .limit(sql.lit(BATCH)),
);
