const MAX_CHARS = 2_048;

/** Where a host may send visitors of one of its instances. */
export interface LinkHome {
  publicAddress: string;
  instanceId: string;
}

/**
 * Returns a link that a host gave, where it leads by HTTP to that host's own public address, or to the instance's own name below
 * it; null otherwise. A renter's access token is added to it: it must go nowhere else.
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

/** As URL has it: in lower case, IPv6 in brackets. */
function hostnameOf(address: string): string | undefined {
  const link = `http://${address.includes(':') ? `[${address}]` : address}/`;
  return URL.canParse(link) ? new URL(link).hostname : undefined;
}
