import type { Readable } from 'node:stream';
import { PullRefused } from '../domain/pull-failure.js';

/** Reads a stream to its end. Throws PullRefused if it has more than `mostBytes`, or ends early. */
export async function readWhole(stream: Readable, mostBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > mostBytes) throw new PullRefused('unsound');
      parts.push(part);
    }
  } catch (error) {
    throw error instanceof PullRefused ? error : new PullRefused('unreachable', { cause: error });
  }
  return Buffer.concat(parts);
}
