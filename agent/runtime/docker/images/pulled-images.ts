import { createHash } from 'node:crypto';
import { canonicalName, parseImageReference } from '../../../../shared/image-reference.js';
import { RELAY_REPOSITORY } from '../../../pulls/order.js';

/**
 * Prefix of the names that the agent gives to images. No registry serves such names, so no renter can replace these
 * images.
 */
export const OWN_IMAGES = 'localhost/gpurent/';
/** Repository of the disks from renters' images: see vm/base-disks.ts. */
export const DISK_IMAGES = `${OWN_IMAGES}vm-disk`;
const PULLED = `${OWN_IMAGES}pulled/`;
const PULLED_BY_DIGEST = `${OWN_IMAGES}pulled-by-digest/`;
/** For names that are too long for the other two; they contain a hash instead. */
const PULLED_LONG = `${OWN_IMAGES}pulled-long/`;
const RELAYED = new RegExp(`^127\\.0\\.0\\.1:\\d+/${RELAY_REPOSITORY}[:@]`);
/** Longest prefix, registry and repository together; Docker accepts 255 characters. */
const MOST_CHARACTERS = 250;
const SHA256 = /^sha256:([0-9a-f]{64})$/;

/**
 * Returns Docker's name for the image that renters call `image`. No renter can ask for that name. Two references have
 * the same name only if they mean the same image of the same registry. Throws if `image` is not a reference.
 */
export function pulledName(image: string): string {
  const parsed = parseImageReference(image);
  if (!parsed) throw new Error(`"${image}" is not an image reference`);
  const { registry, repository } = canonicalName(parsed);
  const { digest } = parsed;
  const tag = digest === null ? (parsed.tag ?? 'latest') : undefined;
  const path = `${encodeHost(registry)}/${repository}`;
  const hex = SHA256.exec(digest ?? '')?.[1];
  const name = tag === undefined ? hex && `${PULLED_BY_DIGEST}${path}:sha256-${hex}` : `${PULLED}${path}:${tag}`;
  if (name !== undefined && name.lastIndexOf(':') <= MOST_CHARACTERS) return name;
  const whole = `${registry}/${repository}${tag === undefined ? `@${digest}` : `:${tag}`}`;
  return `${PULLED_LONG}${createHash('sha256').update(whole).digest('hex')}:1`;
}

/** Returns whether a name contains the address of a relay, as images have it while they are pulled. */
export function isRelayed(name: string): boolean {
  return RELAYED.test(name);
}

/** Returns whether this agent, or an earlier one, gave the name to an image that it fetched for renters. */
export function isFetchedName(name: string): boolean {
  const isOurs = [PULLED, PULLED_BY_DIGEST, PULLED_LONG, `${DISK_IMAGES}:`].some((prefix) => name.startsWith(prefix));
  return isOurs || isRelayed(name);
}

/**
 * Encodes a registry's host and port for an image name. The result is unambiguous: no host name has an underscore, and
 * no `x` is a hexadecimal digit.
 */
function encodeHost(registry: string): string {
  const [, address, , port] = /^(\[.*\]|[^:]*)(:(\d+))?$/.exec(registry) ?? [];
  const parts = (address ?? '').replace(/^\[|\]$/g, '').split(':');
  const host = address?.startsWith('[') ? `ipv6__${parts.map((part) => part || 'x').join('-')}` : address;
  return port === undefined ? String(host) : `${host}_${port}`;
}
