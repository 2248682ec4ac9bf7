/** A Latin letter or digit, and what looks like it, most of it also as a capital. */
const LOOKALIKES = tableOf(
  // Cyrillic, Greek, digits, and Latin letters that are not decomposed.
  'aаαɑᴀ bвβьƀƅʙ cсᴄ dԁđᴅ eеεᴇ fꜰƒ gɡɢ hһнħʜ iіιıɩɪ jјϳȷᴊ kкκᴋ l1ⅼłʟӏ mмᴍ nηɴ oоοø0ᴏ pрρᴘ qԛ rʀ sѕꜱ tтτŧᴛ uυᴜ vνѵʋᴠ wԝᴡɯ xхχ yуүʏ zᴢ',
  // Armenian, in small letters.
  'fք gց hհ jյ lլ nոռ oօ qգզ uս',
  // Cherokee, in small letters, which look like small capitals.
  '4ꮞ 6ꮾ aꭺ bꮟᏼ cꮯ dꭰꮷ eꭼ gꮐꮆᏻ hꮋꮒ iꭵ jꭻ kꮶ lꮮ mꮇ oꮻ pꮲ rꭱꮢ sꮥꮪ tꭲ vꮩ wꮃꮤ yꭹꮍ zꮓ',
  // Coptic, in small letters.
  'aⲁ bⲃ cⲥ eⲉ hⲏ iⲓ kⲕ mⲙ nⲛ oⲟ pⲣ tⲧ xⲭ yⲩ zⲍ',
  // Lisu.
  'aꓮ bꓐ cꓚ dꓓ eꓰ fꓝ gꓖ hꓧ iꓲ jꓙ kꓗ lꓡ mꓟ nꓠ oꓳ pꓑ rꓣ sꓢ tꓔ uꓴ vꓦ wꓪ xꓫ yꓬ zꓜ',
  // Canadian syllabics; zeros and ones of other scripts.
  'aᗅᗩ bᗷ cᑕ dᗞᗪ eᗴ fᖴ gᘜ hᕼ jᒍ lᒪاןו١ mᗰ nᑎ o०০੦૦௦౦೦൦๐໐၀סه٥ pᑭ rᖇ sᔕ uᑌ vᐯ wᗯ xᕁ',
);
/** Capitals that look like another letter than their small ones do. */
const CAPITALS = tableOf('hΗ mΜ nΝ sՏ yΥ zΖ');
/** Signs that show a letter: white on black circles and squares, and those of flags. */
const LETTER_SIGNS: readonly number[] = [0x1_f1_50, 0x1_f1_70, 0x1_f1_e6];
const LETTERS = 26;
const FIRST_LETTER = 'a'.codePointAt(0) ?? 0;

/** Each word is a letter, and what looks like it. */
function tableOf(...words: readonly string[]): ReadonlyMap<string, string> {
  const rows = words.flatMap((line) => line.split(' ')).map((word) => Array.from(word));
  return new Map(rows.flatMap(([latin = '', ...letters]) => letters.map((letter) => [letter, latin] as const)));
}

/**
 * Returns a name's look: the same for names that a hasty reader would confuse. What shows nothing, such as a Hangul filler, is left
 * out, and so are signs like an apostrophe that count as letters.
 */
export function lookOf(name: string): string {
  const shown = Array.from(name.normalize('NFKD'), letterOf).join('');
  const plain = shown.replace(/\p{Default_Ignorable_Code_Point}|[\u02b0-\u02ff]|[^\p{L}\p{N}]/gu, '');
  const small = Array.from(plain, (letter) => CAPITALS.get(letter) ?? letter.toLowerCase()).join('');
  return Array.from(small, (letter) => LOOKALIKES.get(letter) ?? letter)
    .join('')
    .replace(/i/g, 'l');
}

function letterOf(sign: string): string {
  const code = sign.codePointAt(0) ?? 0;
  const first = LETTER_SIGNS.find((from) => from <= code && code < from + LETTERS);
  return first === undefined ? sign : String.fromCodePoint(FIRST_LETTER + code - first);
}
