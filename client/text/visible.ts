/** Characters that nobody sees, that move others, or that a terminal carries out: all but tabs and ends of lines. */
const HIDDEN = String.raw`(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Variation_Selector}\u115f\u1160\u3164\uffa0]`;
/** Scripts that are not written rightly without joiners. */
const JOINING = ['Arabic', 'Syriac', 'Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya', 'Tamil', 'Telugu']
  .concat('Kannada', 'Malayalam', 'Sinhala', 'Khmer', 'Mongolian')
  .map((script) => `\\p{Script=${script}}`)
  .join('');
/** What shapes the picture or the letter before it. */
const SHAPING = [
  String.raw`(?<=\p{Emoji})\ufe0f`,
  String.raw`(?<=[\p{Emoji}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})`,
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])`,
].join('|');
const PATTERN = new RegExp(`(${SHAPING})|${HIDDEN}`, 'gu');

/** Returns text of strangers with each hidden character as its number, such as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(PATTERN, (character, shaping?: string) => shaping ?? numbered(character));
}

function numbered(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
