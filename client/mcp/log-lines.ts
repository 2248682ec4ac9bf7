import { untrusted } from './untrusted.js';

const MOST_CHARS = 16_000;
const LINE_CHARS = 2_000;

/** Returns the last lines that an answer has room for, marked as text of strangers, and how many they are. */
export function lastLines(lines: readonly string[]): { text: string; count: number } {
  const kept: string[] = [];
  let chars = 0;
  for (const line of lines.toReversed()) {
    const cut = line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)} (cut)` : line;
    chars += cut.length + 1;
    if (chars > MOST_CHARS) break;
    kept.push(cut.replace(/\r?\n/g, ' '));
  }
  return { text: untrusted(kept.reverse().join('\n'), MOST_CHARS), count: kept.length };
}
