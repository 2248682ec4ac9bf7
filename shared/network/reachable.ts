import { networkInterfaces } from 'node:os';
import { isForbidden, isWithin } from './forbidden-networks.js';

/** Returns this machine's own addresses, at which it serves more than it exposes to the Internet. */
export function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address));
}

/**
 * Returns whether a request that a stranger causes can go to an IP address: it is in no forbidden network and is not one of this
 * machine's `own`, or is in an `allowed` network.
 */
export function mayReach(address: string, allowed: readonly string[], own: readonly string[]): boolean {
  // An address with a zone is link-local.
  if (address.includes('%') || isForbidden(address, allowed)) return false;
  return !isWithin(address, withoutZones(own)) || isWithin(address, allowed);
}

function withoutZones(addresses: readonly string[]): string[] {
  return addresses.map((address) => address.replace(/%.*$/, ''));
}
