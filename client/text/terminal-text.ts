/** A sequence without its end hides at most so much text. */
const LONGEST = 4_096;

/** How sequences begin that a terminal carries out instead of showing, what is in them, and how they end: in order of preference. */
const FORMS = [
  // Control sequences: colours, moves of the cursor.
  String.raw`(?:\u001b\[|\u009b)[0-?]{0,LONGEST}[ -/]{0,LONGEST}([@-~])?`,
  // Commands of the operating system: titles, links, the clipboard.
  String.raw`(?:\u001b\]|\u009d)[^\u0007\u0018\u001a\u001b\u009c]{0,LONGEST}([\u0007\u0018\u001a\u009c]|\u001b\\)?`,
  // Device control strings and the like.
  String.raw`(?:\u001b[PX^_]|[\u0090\u0098\u009e\u009f])[^\u0018\u001a\u001b\u009c]{0,LONGEST}([\u0018\u001a\u009c]|\u001b\\)?`,
  // Two or three characters, such as a choice of the character set.
  String.raw`\u001b[ -/]{0,LONGEST}([0-~])?`,
];
const SEQUENCE = new RegExp(FORMS.join('|').replaceAll('LONGEST', `${LONGEST}`), 'g');
/** Controls for which a terminal shows nothing; not tabs and ends of lines, and not what begins a sequence that was kept. */
// oxlint-disable-next-line no-control-regex
const SILENT = /[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** Takes out of text that comes in pieces what a terminal carries out instead of showing, also where it began in an earlier piece. */
export class TerminalText {
  /** A sequence of which the end has not come. */
  #open = '';

  /** Returns what a terminal shows of the next piece, and the sequences that `keeps` chooses. */
  next(piece: string, keeps: (sequence: string) => boolean = () => false): string {
    const text = this.#open + piece;
    this.#open = '';
    return text
      .replace(SEQUENCE, (sequence: string, ...found: (string | number | undefined)[]) => {
        const ends = found.slice(0, FORMS.length);
        const isLast = Number(found[FORMS.length]) + sequence.length === text.length;
        if (isLast && sequence.length <= LONGEST && ends.every((end) => end === undefined)) this.#open = sequence;
        return keeps(sequence) ? sequence : '';
      })
      .replace(SILENT, '');
  }
}

/** Returns what a terminal shows of a text. */
export function terminalText(text: string): string {
  return new TerminalText().next(text);
}
