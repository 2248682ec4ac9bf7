import { TerminalText } from '../../../../client/text/terminal-text.js';
import { visible } from '../../../../client/text/visible.js';

/** The output of a workload as plain text, line by line. */
export class LogText {
  readonly #text = new TerminalText();

  /** Returns what a terminal shows of the next line: only what is after its last carriage return. It is one line, whatever the host says. */
  line(line: string): string {
    const shown = this.#text.next(line).replace(/\r+$/, '').split('\r').at(-1) ?? '';
    return visible(shown).replaceAll('\n', '\\u{a}');
  }
}
