import type { LogLine } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { invalidField } from '../../domain/refusal.js';
import { KEPT_LINES } from './log-relay.js';

/** A place in the output of a workload: after the `count`th line with this time stamp. An empty stamp: before the first line. */
interface LogCursor {
  at: string;
  count: number;
}

/** Lines after a place, and the place after them. */
export interface LogPage {
  lines: LogLine[];
  next: string;
  /** Whether lines between that place and these are no longer kept. */
  missed: boolean;
}

/** Returns the first `most` lines after a cursor; for an empty one, the last `most` lines. Refuses with VALIDATION_FAILED what is none. */
export function linesAfter(kept: readonly LogLine[], cursor: string, most: number): LogPage {
  const start = startOf(kept, cursor, most);
  const lines = kept.slice(start.index, start.index + most);
  return {
    lines,
    next: lines.length === 0 ? cursor : cursorAt(kept, start.index + lines.length - 1),
    missed: start.missed,
  };
}

/** Returns the index of the first line after a cursor. */
function startOf(kept: readonly LogLine[], cursor: string, most: number): { index: number; missed: boolean } {
  if (cursor === '') return { index: Math.max(kept.length - most, 0), missed: false };
  const { at, count } = readCursor(cursor);
  const same = kept.flatMap((line, index) => (line.at === at ? [index] : []));
  const found = same[Math.min(count, same.length) - 1];
  if (found !== undefined) return { index: found + 1, missed: false };
  const later = kept.findIndex((line) => line.at > at);
  // Without that line, and with older ones dropped, nobody knows what was between it and the oldest that is kept.
  const missed = later === 0 && (at !== '' || kept.length >= KEPT_LINES);
  return { index: later < 0 ? kept.length : later, missed };
}

/** The cursor of a workload that has written nothing. */
export const FIRST_CURSOR = writeCursor({ at: '', count: 0 });

function cursorAt(kept: readonly LogLine[], index: number): string {
  const at = kept[index]?.at ?? '';
  return writeCursor({ at, count: kept.slice(0, index + 1).filter((line) => line.at === at).length });
}

function writeCursor({ at, count }: LogCursor): string {
  return Buffer.from(JSON.stringify([at, count])).toString('base64url');
}

/** Refuses with VALIDATION_FAILED a text that is no cursor. An empty one is before the first line. */
export function readCursor(cursor: string): LogCursor {
  const [at, count] = parse(cursor);
  if (typeof at === 'string' && typeof count === 'number') return { at, count };
  throw invalidField('after', 'must be the `next_after` of an earlier answer, or empty');
}

function parse(cursor: string): unknown[] {
  try {
    const key = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
    return Array.isArray(key) ? key : [];
  } catch {
    return [];
  }
}
