import { write } from 'node:fs';
import { promisify } from 'node:util';
import { sleep, type Clock } from '../shared/clock.js';
import { MOST_LINE_BYTES } from './domain/audit-line.js';
import type { WriteText } from './services/audit-out/outputs.js';

/** How long a reader that reads nothing is left alone before the next attempt. */
const FULL_MS = 250;

const writeBytes = promisify(write);

/**
 * Returns the function that writes lines to standard output, or to `fd`, which must not block. It writes beside the event loop, one piece
 * of at most {@link MOST_LINE_BYTES} at a time, which a pipe or local socket takes whole or not at all. While a reader reads nothing, it
 * tries again and again: neither the program nor its memory feels that.
 */
export function standardOutput(clock: Clock, fd = openStdout()): WriteText {
  const writeAll = async (piece: Buffer, signal: AbortSignal) => {
    for (let done = 0; done < piece.length;) {
      signal.throwIfAborted();
      try {
        const { bytesWritten } = await writeBytes(fd, piece, done, piece.length - done, null);
        done += bytesWritten;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        await sleep(clock, FULL_MS, signal);
      }
    }
  };
  return async (lines, signal) => {
    for (const piece of piecesOf(lines)) await writeAll(piece, signal);
  };
}

/**
 * Returns the descriptor of standard output. Node makes a pipe or socket non-blocking when it opens its stream. Otherwise a reader that reads
 * nothing would hold one of the few threads that write, which then also keeps the process from ending.
 */
function openStdout(): number {
  return process.stdout.fd;
}

/** Joins lines to pieces of at most {@link MOST_LINE_BYTES}. */
function piecesOf(lines: readonly string[]): Buffer[] {
  const pieces: Buffer[] = [];
  let parts: Buffer[] = [];
  let size = 0;
  for (const line of lines.map((text) => Buffer.from(`${text}\n`))) {
    if (size + line.length > MOST_LINE_BYTES) {
      pieces.push(Buffer.concat(parts));
      [parts, size] = [[], 0];
    }
    parts.push(line);
    size += line.length;
  }
  return [...pieces, Buffer.concat(parts)];
}
