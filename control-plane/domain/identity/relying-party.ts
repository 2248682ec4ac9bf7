/** What passkeys are made for, by WebAuthn: they work at this origin alone. */
export interface RelyingParty {
  /** The name of the control plane, as browsers compare it. */
  id: string;
  origin: string;
}

/**
 * Returns what the passkeys of a control plane at this public address are made for; null: browsers make none there, because the address is
 * unknown, names no host but an IP address, or is not secure.
 */
export function relyingPartyAt(publicUrl: string | null): RelyingParty | null {
  if (publicUrl === null) return null;
  const { hostname, origin, protocol } = new URL(publicUrl);
  const isName = !/^(\[.*\]|[\d.]+)$/.test(hostname);
  const isSecure = protocol === 'https:' || hostname === 'localhost' || hostname.endsWith('.localhost');
  return isName && isSecure ? { id: hostname, origin } : null;
}
