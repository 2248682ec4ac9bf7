/** Matches control characters, and those that reorder the text around them, such as the price beside a model. */
export const UNPLAIN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** Returns one line without such characters, of at most `longest` characters. */
export function plainLine(text: string, longest: number): string {
  return text
    .replaceAll(new RegExp(`${UNPLAIN.source}+`, 'gu'), ' ')
    .trim()
    .slice(0, longest);
}

/** Scripts that are not written rightly without joiners. */
const JOINING = ['Arabic', 'Syriac', 'Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya', 'Tamil', 'Telugu']
  .concat('Kannada', 'Malayalam', 'Sinhala', 'Khmer', 'Mongolian')
  .map((script) => `\\p{Script=${script}}`)
  .join('');
/** Characters that show nothing by themselves, where they change a letter or a picture that is shown. */
const SHAPING = [
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])`,
  String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})`,
  String.raw`(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)`,
  String.raw`(?<=\u{1f3f4}[\u{e0020}-\u{e007f}]*)[\u{e0020}-\u{e007f}]|(?<=\p{Script=Mongolian})[\u180b-\u180f]`,
  // Signs of Arabic and Syriac that are shown, although they count as format characters.
  String.raw`[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2]`,
].join('|');
const SHAPED = new RegExp(SHAPING, 'gu');
const UNSEEN = /[\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const EACH_UNSEEN = new RegExp(UNSEEN, 'gu');
/** Anything but spaces, marks, and the empty pattern of Braille. */
const SEEN = /[^\s\p{M}\u2800]/u;

/**
 * Tells whether people see all of a name: it has no character that shows nothing, with which it could imitate another one, and is not
 * made of spaces alone. An empty one is fine.
 */
export function isSeen(name: string): boolean {
  return name === '' || (SEEN.test(name) && !UNSEEN.test(name.replace(SHAPED, '')));
}

/** Returns a name of which people see all: the same, or with U+FFFD for each character that shows nothing. */
export function seenName(name: string): string {
  if (isSeen(name)) return name;
  const shown = name.replace(EACH_UNSEEN, '\ufffd').trim();
  return shown !== '' && isSeen(shown) ? shown : '\ufffd';
}
