/** The hosts of Microsoft at which people of a company sign in: those of the world, of the US government and of China. */
const CLOUDS = ['login.microsoftonline.com', 'login.microsoftonline.us', 'login.partner.microsoftonline.cn'];
/** Whatever else Microsoft runs: older addresses, and sign-ins of customers, who name any address as theirs. */
const OTHERS = /(^|\.)(microsoftonline\.(com|us|cn|de)|chinacloudapi\.cn|windows\.net|b2clogin\.com|ciamlogin\.com)$/;
const PINNED = /^\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\/v2\.0$/i;
/** The tenant of all private accounts. */
const CONSUMERS = '9188040d-6c67-4c5b-b112-36a304b66dad';

/**
 * Returns whose people sign in at an issuer: `none`: it is not Microsoft; `one`: those of one tenant of Microsoft Entra; `many`: those of
 * more than one, so nobody answers for what they say.
 */
export function tenantsOf(issuer: string): 'none' | 'one' | 'many' {
  const { hostname, pathname } = new URL(issuer);
  if (!CLOUDS.includes(hostname)) return OTHERS.test(hostname) ? 'many' : 'none';
  const tenant = PINNED.exec(pathname)?.[1]?.toLowerCase();
  return tenant === undefined || tenant === CONSUMERS ? 'many' : 'one';
}

/** What Microsoft Entra says of a person. */
export interface EntraClaims {
  /** Whether the domain of the address is one that the tenant has proven to be its own. */
  isDomainVerified: boolean;
  /** Whether the person belongs to another tenant, whose administrator has typed the address. */
  isGuest: boolean;
}

/** Reads the claims of an ID token of Microsoft Entra. Microsoft documents both as a number, and sends a boolean or text as well. */
export function entraClaimsOf(claims: Readonly<Record<string, unknown>>): EntraClaims {
  const names = [claims['upn'], claims['preferred_username']];
  return {
    isDomainVerified: [true, 'true', 1, '1'].some((yes) => claims['xms_edov'] === yes),
    isGuest:
      [1, '1'].some((yes) => claims['acct'] === yes) ||
      names.some((name) => typeof name === 'string' && name.toUpperCase().includes('#EXT#')),
  };
}
