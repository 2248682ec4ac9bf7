/** A sequence that a terminal carries out instead of showing: CSI, then OSC and other strings, then two or three characters. */
const SEQUENCE =
  // eslint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?/g;
/** Colour, bold and so on. */
// eslint-disable-next-line no-control-regex
const COLOUR = /^\u001b\[[0-9;:]*m$/;
/** What has no shape of its own, or turns the text around it: controls, marks of direction, marks that begin a file. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const RESET = '\u001b[0m';

/** Returns text of strangers (labels, names, messages) as one line that a terminal only shows. */
export function plain(text: string): string {
  return text
    .replace(SEQUENCE, '')
    .replace(/[\t\r\n]+/g, ' ')
    .replace(UNSEEN, '');
}

/** Returns a line that a workload has written: with tabs, and with its colours if asked for, which end with the line. */
export function programOutput(line: string, withColour: boolean): string {
  const shown = line
    .replace(SEQUENCE, (sequence) => (withColour && COLOUR.test(sequence) ? sequence : ''))
    .replace(/\r+\n?/g, '\n')
    .replace(UNSEEN, (character) =>
      character === '\t' || character === '\n' || character === '\u001b' ? character : '',
    );
  const kept = withColour ? shown : shown.replaceAll('\u001b', '');
  return kept.includes('\u001b') ? kept + RESET : kept;
}

/** Returns JSON whose strings hold nothing that a terminal would carry out. JSON.stringify escapes only some of it. */
export function jsonText(value: unknown, indent = 2): string {
  return JSON.stringify(value, undefined, indent).replace(UNSEEN, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
