import { plain } from '../terminal/plain-text.js';
import type { Terminal } from '../terminal/terminal.js';
import { truncate } from './table.js';

const CLEAR_LINE = '\r\u001b[K';

/** Shows how something goes on: in one line that changes where a person looks, otherwise each text once. */
export class Progress {
  private last = '';

  constructor(private readonly terminal: Terminal) {}

  show(text: string): void {
    const line = plain(text);
    if (line === this.last) return;
    this.last = line;
    const { stderr, showsProgress, columns = 80 } = this.terminal;
    stderr.write(showsProgress ? CLEAR_LINE + truncate(line, columns - 1) : `${line}\n`);
  }

  /** Leaves the line; what is written next begins at its start. */
  end(): void {
    if (this.terminal.showsProgress && this.last !== '') this.terminal.stderr.write(CLEAR_LINE);
    this.last = '';
  }
}
