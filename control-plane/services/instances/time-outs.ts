import { DEADLINES_MS } from '../../domain/deadlines.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../platform.js';
import { recordCommand } from './commands.js';
import type { Instance } from './queries.js';
import { undoStart } from './release.js';
import { recordEvent, transition } from './transitions.js';

const BATCH = 200;

/**
 * Ends what takes too long: a stop goes back to `running` while it is still being tried, a start is undone, a provision without
 * progress fails. Answers how many.
 */
export function expireTransitions(platform: Platform): { stops: number; starts: number; provisions: number } {
  const { store, ids } = platform;
  return store.transact((tx) => {
    const stops = overdue(tx, 'stopping');
    for (const instance of stops) giveUpStop(tx, instance);
    const starts = overdue(tx, 'starting');
    for (const instance of starts) {
      const error_message = 'the host has not brought the workload up within 10 minutes; the start is undone';
      const stopped = transition(tx, instance, 'stopped', { error_code: 'start_timed_out', error_message });
      recordEvent(tx, instance.id, 'start_timed_out', error_message);
      undoStart(tx, ids, stopped);
    }
    const provisions = overdue(tx, 'creating').filter((instance) => isStuck(tx, instance));
    for (const instance of provisions) {
      const error_message = 'the host has made no progress for 30 minutes';
      const error = transition(tx, instance, 'error', { error_code: 'provision_failed', error_message });
      recordEvent(tx, instance.id, 'provision_failed', error_message);
      // Its GPUs are free once the host has said that nothing of it runs.
      recordCommand(tx, ids, error, 'release');
    }
    return { stops: stops.length, starts: starts.length, provisions: provisions.length };
  });
}

/** The stop itself stays open: it is sent until the host has done it. */
function giveUpStop(tx: Tx, instance: Instance): void {
  const error_message = 'the host has not confirmed the stop within 30 minutes; it is still being tried';
  transition(tx, instance, 'running', { error_code: 'stop_timed_out', error_message });
  recordEvent(tx, instance.id, 'stop_timed_out', error_message);
}

function overdue(tx: Tx, status: keyof typeof DEADLINES_MS): Instance[] {
  return tx.all(
    query
      .selectFrom('instances')
      .selectAll()
      .where('status', '=', status)
      .where('status_changed_at', '<=', tx.now - DEADLINES_MS[status])
      .limit(BATCH),
  );
}

function isStuck(tx: Tx, instance: Instance): boolean {
  const last = tx.get(
    query
      .selectFrom('instance_events')
      .select('at')
      .where('instance_id', '=', instance.id)
      .orderBy('id', 'desc')
      .limit(1),
  );
  return (last?.at ?? 0) <= tx.now - DEADLINES_MS.creating;
}
