import { createHash } from 'node:crypto';
import { canonicalName, parseImageReference } from '../../../shared/image-reference.js';
import { RELAY_REPOSITORY } from '../../pulls/order.js';

/** What the agent makes for itself is named so, which no registry serves: no renter can put anything in its place. */
export const OWN_IMAGES = 'localhost/gpurent/';
/** Disks out of renters' images: see vm/base-disks.ts. */
export const DISK_IMAGES = `${OWN_IMAGES}vm-disk`;
const PULLED = `${OWN_IMAGES}pulled/`;
const PULLED_BY_DIGEST = `${OWN_IMAGES}pulled-by-digest/`;
/** Of names that do not fit below the others: named by their hash. */
const PULLED_LONG = `${OWN_IMAGES}pulled-long/`;
const RELAYED = new RegExp(`^127\\.0\\.0\\.1:\\d+/${RELAY_REPOSITORY}[:@]`);
/** Of registry, repository and our prefix together; Docker takes 255. */
const MOST_CHARACTERS = 250;
const SHA256 = /^sha256:([0-9a-f]{64})$/;

/**
 * The name by which Docker knows what was pulled for renters as `image`, and which no renter can ask for. Two images have the
 * same only where they mean the same in the same registry.
 */
export function pulledName(image: string): string {
  const parsed = parseImageReference(image);
  if (!parsed) throw new Error(`"${image}" is no reference of an image`);
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

/** While a pull goes on, Docker knows its image by the relay's address. */
export function isRelayed(name: string): boolean {
  return RELAYED.test(name);
}

/** Whether a name is one that this agent, or one before it, has given to what was fetched for renters. */
export function isFetchedName(name: string): boolean {
  const isOurs = [PULLED, PULLED_BY_DIGEST, PULLED_LONG, `${DISK_IMAGES}:`].some((prefix) => name.startsWith(prefix));
  return isOurs || isRelayed(name);
}

/** No host name has an underscore, nor an `x` among hexadecimal digits. */
function encodeHost(registry: string): string {
  const [, address, , port] = /^(\[.*\]|[^:]*)(:(\d+))?$/.exec(registry) ?? [];
  const parts = (address ?? '').replace(/^\[|\]$/g, '').split(':');
  const host = address?.startsWith('[') ? `ipv6__${parts.map((part) => part || 'x').join('-')}` : address;
  return port === undefined ? String(host) : `${host}_${port}`;
}
