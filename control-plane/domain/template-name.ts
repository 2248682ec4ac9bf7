/** Letters of other scripts, and digits, that look like Latin letters. */
const LOOKALIKES: Readonly<Record<string, string>> = Object.fromEntries(
  'аa,еe,оo,рp,сc,хx,уy,іi,ѕs,јj,ԁd,һh,ԛq,ԝw,кk,мm,тt,вb,нh,αa,βb,εe,ηn,ιi,κk,νv,οo,ρp,τt,υu,χx,0o,1l,ıi,ⅼl'
    .split(',')
    .map(([letter = '', latin = '']) => [letter, latin]),
);

/** Returns a name's look: the same for names that a hasty reader would confuse. */
export function lookOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
  return plain.replace(/./gu, (letter) => LOOKALIKES[letter] ?? letter).replace(/i/g, 'l');
}
