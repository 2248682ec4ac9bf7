import type { Caller } from '../../domain/caller.js';
import type { Row } from '../../store/schema.js';
import { FIRST_CURSOR, linesAfter, readCursor } from '../connections/log-cursor.js';
import { getOwnInstance } from '../instances/queries.js';
import type { Platform } from '../system/platform.js';

/** Lines of output, and where the next request goes on. */
export interface LogsAfter {
  lines: string[];
  next_after: string;
  /** Whether lines before these were dropped that the client has not read; null: this is not known. */
  lines_missed: boolean | null;
}

/**
 * Returns the last `tail` lines of the workload's output, oldest first. Empty until the first run. After the end of the workload, or
 * while its host is not connected, they are the last known lines. Refuses with INSTANCE_NOT_FOUND.
 */
export async function readLogs(
  platform: Platform,
  caller: Caller,
  id: string,
  tail: number,
): Promise<readonly string[]> {
  const instance = platform.store.transact((tx) => getOwnInstance(tx, caller, id));
  const live = await followed(platform, instance);
  return (live?.length ? live.map(({ text }) => text) : keptLines(instance)).slice(-tail);
}

/**
 * Returns the first `most` lines after a cursor, oldest first; for an empty cursor, the last `most` lines. Whoever goes on with
 * `next_after` gets each line once, unless more was written than the 1,000 lines that are kept. The lines that the end of a workload has
 * left have no place, so only an empty cursor gets them. Refuses with INSTANCE_NOT_FOUND, and with VALIDATION_FAILED.
 */
export async function readLogsAfter(
  platform: Platform,
  caller: Caller,
  id: string,
  cursor: string,
  most: number,
): Promise<LogsAfter> {
  if (cursor !== '') readCursor(cursor);
  const instance = platform.store.transact((tx) => getOwnInstance(tx, caller, id));
  const live = await followed(platform, instance);
  if (live?.length) {
    const { lines, next, missed } = linesAfter(live, cursor, most);
    return { lines: lines.map(({ text }) => text), next_after: next, lines_missed: missed };
  }
  const isFirst = cursor === '';
  const lines = isFirst ? keptLines(instance).slice(-most) : [];
  const isKnown = isFirst || instance.started_at === null;
  return { lines, next_after: isFirst ? FIRST_CURSOR : cursor, lines_missed: isKnown ? false : null };
}

/** Returns the lines that the host of an instance sends; null: it is not connected, or the workload is gone or has never run. */
async function followed({ logs }: Platform, instance: Row<'instances'>) {
  const { id, status, started_at, status_changed_at } = instance;
  if (started_at === null || status === 'destroying' || status === 'destroyed') return null;
  const isRunning = status === 'running';
  const run = `${isRunning ? 'up' : 'down'} since ${status_changed_at}`;
  return logs.tail({ id, machineId: instance.machine_id, run, isRunning });
}

function keptLines({ started_at, last_lines }: Row<'instances'>): string[] {
  return started_at === null ? [] : (JSON.parse(last_lines ?? '[]') as string[]);
}
