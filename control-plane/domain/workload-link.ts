const MAX_CHARS = 2_048;

/**
 * Returns a link that a host gave, where it leads to that host's own public address by HTTP; null otherwise. A renter's access
 * token is added to it: it must go nowhere else.
 */
export function workloadLink(link: string, publicAddress: string): string | null {
  if (link.length > MAX_CHARS || !URL.canParse(link)) return null;
  const { protocol, hostname, username, password } = new URL(link);
  const isHttp = protocol === 'http:' || protocol === 'https:';
  const isPlain = username === '' && password === '';
  return isHttp && isPlain && hostname === hostnameOf(publicAddress) ? link : null;
}

/** As URL has it: in lower case, IPv6 in brackets. */
function hostnameOf(address: string): string | undefined {
  const link = `http://${address.includes(':') ? `[${address}]` : address}/`;
  return URL.canParse(link) ? new URL(link).hostname : undefined;
}
