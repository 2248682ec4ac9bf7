import { MINUTE_MS } from '../../../shared/time.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Platform } from '../system/platform.js';

/** The time in the database is at most this much older than the last message. */
const GRAIN_MS = MINUTE_MS;
/** More hosts wait for the next run, a second later. */
const BATCH = 200;

/**
 * Writes `last_seen_at` of machines whose hosts were heard, once a minute for each: one transaction for many hosts, instead of one for
 * each heartbeat and hello. Returns the number of machines.
 */
export function writeLastSeen({ connections, clock, store }: Platform): { written: number } {
  const due = connections.findUnwritten(GRAIN_MS, BATCH);
  if (due.length === 0) return { written: 0 };
  const now = clock.monotonic();
  store.transact((tx) => {
    for (const { machineId, heard } of due) {
      tx.run(setLastSeen({ machineId, at: Math.round(tx.now - (now - heard.at)) }));
      tx.afterCommit(() => connections.setWritten(machineId, heard.at));
    }
  });
  return { written: due.length };
}

const setLastSeen = compileOnce(({ machineId, at }: { machineId: string; at: number }) =>
  query.updateTable('machines').set({ last_seen_at: at }).where('id', '=', machineId),
);
