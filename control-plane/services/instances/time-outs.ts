import type { Ids } from '../../../shared/ids.js';
import { DEADLINES_MS, GRACE_MS } from '../../domain/deadlines.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { oneByOne } from '../one-by-one.js';
import type { Platform } from '../platform.js';
import { recordCommand } from './commands.js';
import { findInstance, type Instance } from './queries.js';
import { undoStart } from './release.js';
import { fail, recordEvent, transition } from './transitions.js';

const BATCH = 200;
/**
 * Ends what takes too long: a stop goes back to `running` while it is still being tried, a start is undone, a provision without
 * progress fails. Nothing ends while the wall clock is not to be believed. Answers how many.
 */
export function expireTransitions(platform: Platform): { expired: number } {
  if (!platform.clockWatch.isTrusted()) return { expired: 0 };
  if (platform.clock.monotonic() - platform.bootedAt < GRACE_MS) return { expired: 0 };
  const overdue = platform.store.transact((tx) =>
    (Object.keys(DEADLINES_MS) as (keyof typeof DEADLINES_MS)[]).flatMap((status) => findOverdue(tx, status)),
  );
  return { expired: oneByOne(platform, overdue, (tx, { id }) => expire(platform, tx, findInstance(tx, id))) };
}

function expire({ ids }: Platform, tx: Tx, instance: Instance | undefined): void {
  switch (instance?.status) {
    case 'stopping': {
      // The stop itself stays open: it is sent until the host has done it.
      const error_message = 'the host has not confirmed the stop within 30 minutes; it is still being tried';
      transition(tx, instance, 'running', { error_code: 'stop_timed_out', error_message });
      return recordEvent(tx, instance.id, 'stop_timed_out', error_message);
    }
    case 'starting': {
      const error_message = 'the host has not brought the workload up within 10 minutes; the start is undone';
      const stopped = transition(tx, instance, 'stopped', { error_code: 'start_timed_out', error_message });
      recordEvent(tx, instance.id, 'start_timed_out', error_message);
      return undoStart(tx, ids, stopped);
    }
    case 'creating':
      return giveUpProvision(tx, ids, instance, 'the host has made no progress for 30 minutes');
    default:
      return;
  }
}

/** Into `error` without the host's word: its GPUs are free once the host has said that nothing of it runs. */
export function giveUpProvision(tx: Tx, ids: Ids, instance: Instance, reason: string): void {
  recordCommand(tx, ids, fail(tx, instance, 'provision_failed', reason), 'release');
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
