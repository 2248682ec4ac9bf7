import { terminalText, TerminalText } from '../../text/terminal-text.js';
import { visible } from '../../text/visible.js';

/** Colour, bold and so on. */
// oxlint-disable-next-line no-control-regex
const COLOUR = /^\u001b\[[0-9;:]*m$/;
/** What JSON.stringify leaves as it is, though a terminal shows it otherwise, or not at all. */
// oxlint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const RESET = '\u001b[0m';

/** Returns text of strangers (labels, names, messages) as one line that a terminal only shows, with hidden characters as their numbers. */
export function plain(text: string): string {
  return visible(terminalText(text).replace(/[\t\r\n]+/g, ' '));
}

/** The output of a workload, line by line. */
export class ProgramOutput {
  readonly #text = new TerminalText();

  constructor(private readonly withColour: boolean) {}

  /** Returns a line with its tabs, and with its colours if asked for, which end with the line. */
  line(line: string): string {
    const shown = this.#text
      .next(line, (sequence) => this.withColour && COLOUR.test(sequence))
      .replace(/\r+\n?/g, '\n')
      .split('\u001b')
      .map(visible)
      .join('\u001b');
    return shown.includes('\u001b') ? shown + RESET : shown;
  }
}

/** Returns JSON whose strings hold nothing that a terminal would carry out. JSON.stringify escapes only some of it. */
export function jsonText(value: unknown, indent = 2): string {
  return JSON.stringify(value, undefined, indent).replace(UNSEEN, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
