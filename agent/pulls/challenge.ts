/** The authentication that a registry demands. */
export type Challenge =
  | { scheme: 'basic' }
  | {
      scheme: 'bearer';
      /** URL of the token server. */
      realm: string;
      service: string;
    };

const MOST_CHARACTERS = 4_096;
const SCHEME = /(?:^|,)\s*(basic|bearer)(?=\s|,|$)/gi;
const PARAMETER = /([a-z_]{1,32})\s*=\s*"([^"\\]*)"/gi;

/** Parses a `WWW-Authenticate` header, preferring bearer tokens. Returns undefined if it names neither scheme. */
export function parseChallenge(header: string): Challenge | undefined {
  const text = header.slice(0, MOST_CHARACTERS);
  const found = [...text.matchAll(SCHEME)].map((match) => ({ scheme: match[1]?.toLowerCase(), at: match.index }));
  for (const { scheme, at } of found) {
    if (scheme !== 'bearer') continue;
    const end = found.find((other) => other.at > at)?.at ?? text.length;
    const given = new Map([...text.slice(at, end).matchAll(PARAMETER)].map(([, key = '', value = '']) => [key, value]));
    const realm = given.get('realm');
    if (realm !== undefined) return { scheme: 'bearer', realm, service: given.get('service') ?? '' };
  }
  return found.some(({ scheme }) => scheme === 'basic') ? { scheme: 'basic' } : undefined;
}
