import { DOCKER_HUB, canonicalName, parseImageReference } from '../../shared/image-reference.js';
import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { networkOf } from './network.js';

const FIRST_MS = 10 * MINUTE_MS;
/** Failures are forgotten so long after the image may be tried again. */
export const SLOW_IMAGE_MEMORY_MS = DAY_MS;

/** Returns for how long, in milliseconds, an image is not tried again that was too slow `failures` times in a row. */
export function slowImageBackOffMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 10), DAY_MS);
}

/**
 * Returns what slow pulls of an image are counted for. A renter changes tags at will, and on a registry of their own also
 * repositories, ports and host names: so of Docker Hub it is the repository, of any other registry its domain or network.
 */
export function slowImageSource(image: string): string {
  const reference = parseImageReference(image);
  if (!reference) return image;
  const { registry, repository } = canonicalName(reference);
  if (registry === DOCKER_HUB) return `${DOCKER_HUB}/${repository}`;
  const address = /^\[(.*)\]/.exec(registry)?.[1];
  if (address !== undefined) return networkOf(address);
  const host = registry.replace(/:\d+$/, '');
  return /^[\d.]+$/.test(host) ? host : host.split('.').slice(-2).join('.');
}
