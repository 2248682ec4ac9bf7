import type { Encryption } from '../secrets/encryption.js';

/** What a renter has rented a workload for: no host and no later change of an offer makes it dearer. */
export interface Terms {
  disk_gb: number;
  price_per_hour_micro: number;
  storage_price_per_gb_hour_micro: number;
  release_stopped_after_ms: number | null;
}

/** Whose a workload is, and on which terms: what an operator needs to adopt it where the store has never heard of it. */
export interface Origin extends Terms {
  instance_id: string;
  organization_id: string;
  template_id: string;
  offer_id: string;
  label: string | null;
  /** One line of an authorized_keys file; empty: the workload has no SSH. */
  ssh_public_key: string;
}

/** How long it may be as a host repeats it, in characters: a key of RSA with 16,384 bits among the rest. */
export const MAX_ORIGIN_CHARS = 8_192;

/** Seals it for a host, which keeps it with the workload and neither reads nor changes it. Returns base64. */
export function sealOrigin(encryption: Encryption, origin: Origin): string {
  return encryption.encrypt('workload.origin', origin).toString('base64');
}

/** Opens what a host repeats of `instanceId`; undefined for what this store's key did not seal for that very instance. */
export function openOrigin(encryption: Encryption, sealed: string | null, instanceId: string): Origin | undefined {
  if (!sealed) return undefined;
  try {
    const origin = encryption.decrypt('workload.origin', Buffer.from(sealed, 'base64')) as Origin;
    return origin.instance_id === instanceId ? origin : undefined;
  } catch {
    return undefined;
  }
}
