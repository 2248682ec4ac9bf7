/** Longer addresses are none of this control plane. */
export const MOST_CHARS = 2_048;
/** The page for people whose company is not named on the page to sign in. */
export const COMPANY = '/sign-in/company';
const NOWHERE = 'http://nowhere.invalid';

/**
 * Returns an address to go to if it is a path of this server, as browsers read it; otherwise undefined. Browsers leave out tabs and line
 * breaks, take a backslash for a slash, and two slashes for another server.
 */
export function ownPath(address: string | undefined): string | undefined {
  if (address === undefined || address.length > MOST_CHARS || !address.startsWith('/')) return undefined;
  if (!URL.canParse(address, NOWHERE)) return undefined;
  const { origin, pathname, search, hash } = new URL(address, NOWHERE);
  if (origin !== NOWHERE || pathname.startsWith('//')) return undefined;
  return pathname + search + hash;
}

/** The path to which issuers send browsers back. Each has its own, so that no issuer can pass for another. */
export function returnPathOf(id: string): string {
  return `${COMPANY}/${id}/return`;
}
