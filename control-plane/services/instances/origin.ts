import type { Encryption } from '../secrets/encryption.js';

/** The terms of a deploy. They are sealed, so that neither a host nor a later change of the offer can raise them. */
export interface Terms {
  disk_gb: number;
  price_per_hour_micro: number;
  storage_price_per_gb_hour_micro: number;
  release_stopped_after_ms: number | null;
}

/** The owner and the terms of a workload: what an operator needs to adopt a workload that the database does not know. */
export interface Origin extends Terms {
  instance_id: string;
  organization_id: string;
  template_id: string;
  offer_id: string;
  label: string | null;
  /** One line of an authorized_keys file; empty: the workload has no SSH. */
  ssh_public_key: string;
  /** The limits at the deploy, and the API key that has deployed it. Releases before have sealed none. */
  stop_at?: number | null;
  max_charge_micro?: number | null;
  idle_stop_minutes?: number | null;
  api_key_id?: string | null;
}

/** Longest sealed origin that is taken from a host, in characters. One with an RSA key of 16,384 bits is shorter. */
export const MAX_ORIGIN_CHARS = 8_192;

/** Encrypts an origin. The host keeps it with the workload and can neither read nor change it. Returns base64. */
export function sealOrigin(encryption: Encryption, origin: Origin): string {
  return encryption.encrypt('workload.origin', origin).toString('base64');
}

/** Decrypts an origin that a host sends for `instanceId`. Undefined if it was not encrypted with this key for this instance. */
export function openOrigin(encryption: Encryption, sealed: string | null, instanceId: string): Origin | undefined {
  if (!sealed) return undefined;
  try {
    const origin = encryption.decrypt('workload.origin', Buffer.from(sealed, 'base64')) as Origin;
    return origin.instance_id === instanceId ? origin : undefined;
  } catch {
    return undefined;
  }
}
