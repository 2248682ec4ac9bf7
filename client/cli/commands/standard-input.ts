import { text } from 'node:stream/consumers';
import type { Terminal } from '../terminal/terminal.js';

/** Returns all of standard input. */
export async function readAll({ stdin, isInteractive, stderr }: Terminal): Promise<string> {
  if (isInteractive) stderr.write('Type it, then Ctrl-D:\n');
  return text(stdin);
}
