import { expect, it } from 'vitest';
import { isSeen, seenName } from '../../shared/plain-text.js';

it.each([
  ['a zero-width space', 'Acme\u200b'],
  ['a joiner between Latin letters', 'Ac\u200dme'],
  ['a joiner at the end', 'شرکت\u200c'],
  ['a soft hyphen', 'Ac\u00adme'],
  ['a Hangul filler', '\u3164'],
  ['a half-width filler', 'Acme\uffa0'],
  ['a byte order mark', '\ufeffAcme'],
  ['a word joiner', 'Acme\u2060'],
  ['a tag', 'Acme\u{e0041}'],
  ['a variation selector after a digit', 'Acme 1\ufe0f'],
  ['a variation selector after a letter', 'Acme\ufe00'],
  ['a line separator', 'Acme\u2028'],
  ['spaces alone', ' \u00a0\u3000'],
  ['the empty pattern of Braille', '\u2800\u2800'],
  ['a mark without a letter', '\u0301'],
  ['a letter of nobody’s script', '\ue000'],
  ['half a character', 'Acme\ud83d'],
])('a name with %s is not all seen', (_, name) => {
  expect(isSeen(name)).toBe(false);
  expect(seenName(name)).toMatch(/\ufffd/);
  expect(isSeen(seenName(name))).toBe(true);
});

it.each([
  ['none', ''],
  ['Latin', 'Ångström & Søn'],
  ['Persian, with a non-joiner', 'شرکت می\u200cخواهم'],
  ['Hindi, with a joiner', 'क्\u200dष'],
  ['Sinhala, with a joiner', 'ශ්\u200dරී ලංකා'],
  ['Malayalam', 'ന്\u200d\u0d31'],
  ['Khmer', 'ក្រុមហ៊ុន'],
  ['Mongolian, with a selector', 'ᠮᠣᠩᠭᠤᠯ\u180b'],
  ['a family', '👩\u200d👩\u200d👧 GPUs'],
  ['a person with a colour of skin at work', '👩🏽\u200d💻'],
  ['a heart', '❤\ufe0f lab'],
  ['a keycap', '1\ufe0f\u20e3'],
  ['a flag of England', '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}'],
  ['Japanese, with its space', '株式会社\u3000例'],
  ['Braille', '⠁\u2800⠃'],
])('a name is all seen: %s', (_, name) => {
  expect(isSeen(name)).toBe(true);
  expect(seenName(name)).toBe(name);
});
