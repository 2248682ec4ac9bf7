/** What a request says of where it comes from. Pages cannot forge these headers. */
export interface Provenance {
  /** `Sec-Fetch-Site`, which present browsers send to addresses with https and to localhost; absent: an older browser or a program. */
  site: string | undefined;
  /** `Origin`, which browsers send with every request that can change something. */
  origin: string | undefined;
  /** Whether it has the header that no form can send, and that pages of other origins can send only after this server has allowed it. */
  isMarked: boolean;
}

/** Tells whether a page of this origin has sent the request. A person who follows a link or types the address has not: that is `none`. */
export function isFromOwnPage({ site, origin }: Provenance, ownOrigin: string): boolean {
  return site === undefined ? origin === ownOrigin : site === 'same-origin';
}

/** Tells whether a request that a cookie authenticates may change something: a script of a page of this origin has sent it. */
export function mayChange(provenance: Provenance, ownOrigin: string): boolean {
  return provenance.isMarked && isFromOwnPage(provenance, ownOrigin);
}

/**
 * Tells whether a request that a cookie authenticates may read something. A page of another origin could not read the answer, but it could
 * measure it, embed it, or have it shown.
 */
export function mayRead(provenance: Provenance, ownOrigin: string): boolean {
  const { site, origin, isMarked } = provenance;
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  return origin === undefined ? isMarked : origin === ownOrigin;
}
