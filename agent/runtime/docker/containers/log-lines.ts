import type { LogLine } from '../../workload.js';

const HEADER_BYTES = 8;
/** A longer line is cut: a workload that never ends a line must not fill the memory. */
const MAX_LINE_CHARS = 16_384;

/**
 * Reads Docker's multiplexed output with timestamps, chunk by chunk. Each frame has one line, or a part of a longer
 * line that Docker has split and given another timestamp.
 */
export class LineReader {
  private pending = Buffer.alloc(0);
  private readonly partial = new Map<number, LogLine>();

  /** Returns the lines that `chunk` completes. */
  push(chunk: Buffer): LogLine[] {
    this.pending = Buffer.concat([this.pending, chunk]);
    const lines: LogLine[] = [];
    while (this.pending.length >= HEADER_BYTES) {
      const length = this.pending.readUInt32BE(4);
      if (this.pending.length < HEADER_BYTES + length) break;
      const stream = this.pending[0] ?? 1;
      const text = this.pending.subarray(HEADER_BYTES, HEADER_BYTES + length).toString('utf8');
      this.pending = this.pending.subarray(HEADER_BYTES + length);
      const line = this.addFrame(stream, text);
      if (line) lines.push(line);
    }
    return lines;
  }

  /** Returns the lines that have begun and not ended. */
  rest(): LogLine[] {
    return [...this.partial.values()];
  }

  private addFrame(stream: number, frame: string): LogLine | undefined {
    const space = frame.indexOf(' ');
    const begun = this.partial.get(stream);
    const text = ((begun?.text ?? '') + frame.slice(space + 1)).slice(0, MAX_LINE_CHARS + 1);
    const line = { at: begun?.at ?? frame.slice(0, space), text: text.replace(/\r?\n$/, '').slice(0, MAX_LINE_CHARS) };
    if (!frame.endsWith('\n')) {
      this.partial.set(stream, { ...line, text });
      return undefined;
    }
    this.partial.delete(stream);
    return line;
  }
}

export function readLines(output: Buffer): LogLine[] {
  const reader = new LineReader();
  return [...reader.push(output), ...reader.rest()];
}
