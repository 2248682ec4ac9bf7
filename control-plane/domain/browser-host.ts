/**
 * Returns a host name or IP address in the form by which browsers keep cookies: in lower case, without a port, IPv6 shortened and in
 * brackets, and without a dot at the end, because a name with it leads to the same computer. Returns undefined for what no URL has.
 */
export function browserHost(name: string): string | undefined {
  const bare = name.includes(':') && !name.includes('[') && name.split(':').length > 2 ? `[${name}]` : name;
  // What a URL would read as something else than a host.
  if (/[\s/\\?#@]/.test(bare) || !URL.canParse(`http://${bare}/`)) return undefined;
  return new URL(`http://${bare}/`).hostname.replace(/\.$/, '') || undefined;
}
