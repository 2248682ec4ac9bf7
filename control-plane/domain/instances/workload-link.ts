const MAX_CHARS = 2_048;

/** The two names to which a host can link for one of its instances. */
export interface LinkHome {
  publicAddress: string;
  instanceId: string;
}

/**
 * Returns a link that an agent reported if it leads by HTTP or HTTPS to the host's own public address, or to the instance's own name
 * below it; null otherwise. The API adds the renter's access token to the link, so it must not lead anywhere else.
 */
export function workloadLink(link: string, { publicAddress, instanceId }: LinkHome): string | null {
  if (link.length > MAX_CHARS || !URL.canParse(link)) return null;
  const { protocol, hostname, username, password } = new URL(link);
  const isHttp = protocol === 'http:' || protocol === 'https:';
  const isPlain = username === '' && password === '';
  const home = hostnameOf(publicAddress);
  const isHome = hostname === home || (isName(publicAddress) && hostname === `${instanceId}.${home ?? ''}`);
  return isHttp && isPlain && isHome ? link : null;
}

function isName(address: string): boolean {
  return !/^[\d.]+$|:/.test(address);
}

/** Returns the host name in the form that URL uses: in lower case, IPv6 in brackets. */
function hostnameOf(address: string): string | undefined {
  const link = `http://${address.includes(':') ? `[${address}]` : address}/`;
  return URL.canParse(link) ? new URL(link).hostname : undefined;
}
