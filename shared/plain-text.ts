/** Matches control characters, and those that reorder the text around them, such as the price beside a model. */
export const UNPLAIN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** Returns one line without such characters, of at most `longest` characters. */
export function plainLine(text: string, longest: number): string {
  return text
    .replaceAll(new RegExp(`${UNPLAIN.source}+`, 'gu'), ' ')
    .trim()
    .slice(0, longest);
}
