import { MINUTE_MS } from '../../../shared/time.js';
import { DEADLINES_MS, GRACE_MS } from '../../domain/deadlines.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { recordCommand } from '../instances/commands.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { undoStart } from '../instances/release.js';
import { fail, transition } from '../instances/transitions.js';
import { recordEvent } from '../system/timeline.js';

const BATCH = 200;
/** What an agent tells of every minute while a stop does not succeed. */
const STOP_ATTEMPT = 'stop_attempt';
const ATTEMPT_MS = 10 * MINUTE_MS;
/**
 * Ends what takes too long: a stop goes back to `running` while it is still being tried, a start is undone, a provision without
 * progress fails. Nothing ends while the wall clock is not to be believed. Answers how many.
 */
export function expireTransitions(platform: Platform): { expired: number } {
  if (!platform.clockSteps.isTrusted()) return { expired: 0 };
  if (platform.clock.monotonic() - platform.bootedAt < GRACE_MS) return { expired: 0 };
  const overdue = platform.store.transact((tx) =>
    (Object.keys(DEADLINES_MS) as (keyof typeof DEADLINES_MS)[]).flatMap((status) => findOverdue(tx, status)),
  );
  return {
    expired: forEachInOwnTransaction(platform, overdue, (tx, { id }) => expire(platform, tx, findInstance(tx, id))),
  };
}

function expire({ connections }: Platform, tx: Tx, instance: Instance | undefined): void {
  switch (instance?.status) {
    case 'stopping': {
      // The stop itself stays open: it is sent until the host has done it.
      const error_message = 'the host has not confirmed the stop within 30 minutes; it is still being tried';
      transition(tx, instance, 'running', { error_code: 'stop_timed_out', error_message });
      recordEvent(tx, instance.id, 'stop_timed_out', error_message);
      // One that is away earns nothing.
      if (connections.isConnected(instance.machine_id) && !hasTriedToStop(tx, instance)) cordonUnheard(tx, instance);
      return;
    }
    case 'starting': {
      const error_message = 'the host has not brought the workload up within 10 minutes; the start is undone';
      const stopped = transition(tx, instance, 'stopped', { error_code: 'start_timed_out', error_message });
      recordEvent(tx, instance.id, 'start_timed_out', error_message);
      return undoStart(tx, stopped);
    }
    case 'creating':
      return giveUpProvision(tx, instance, 'the host has made no progress for 30 minutes');
    default:
      return;
  }
}

/** Whether the host has told of an attempt lately, and that the workload is still up: then it tries, and earns by no fault of its own. */
function hasTriedToStop(tx: Tx, { id }: Instance): boolean {
  const attempts = query.selectFrom('instance_events').select('id').where('instance_id', '=', id);
  const recent = attempts.where('kind', '=', STOP_ATTEMPT).where('at', '>=', tx.now - ATTEMPT_MS);
  return tx.get(recent.limit(1)) !== undefined;
}

/** A machine that earns by not doing what it is told is given nothing new until an operator has looked at it. */
function cordonUnheard(tx: Tx, { id, machine_id }: Instance): void {
  const machines = query.updateTable('machines').set({ cordoned_at: tx.now }).where('id', '=', machine_id);
  if (tx.run(machines.where('cordoned_at', 'is', null)) > 0)
    recordEvent(
      tx,
      id,
      'machine_cordoned',
      'the host has not said that it tries to stop the workload; nothing new is put on it',
    );
}

/** Into `error` without the host's word: its GPUs are free once the host has said that nothing of it runs. */
export function giveUpProvision(tx: Tx, instance: Instance, reason: string): void {
  recordCommand(tx, fail(tx, instance, 'provision_failed', reason), 'release');
}

function findOverdue(tx: Tx, status: keyof typeof DEADLINES_MS): { id: string }[] {
  return tx.all(
    query
      .selectFrom('instances')
      .select('id')
      .where('status', '=', status)
      .where('progress_at', '<=', tx.now - DEADLINES_MS[status])
      .limit(BATCH),
  );
}
