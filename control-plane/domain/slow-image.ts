import { DOCKER_HUB, canonicalName, parseImageReference } from '../../shared/image-reference.js';
import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { networkOf } from './network.js';

const FIRST_MS = 10 * MINUTE_MS;
/** Failures are forgotten so long after the image can be tried again. */
export const SLOW_IMAGE_MEMORY_MS = DAY_MS;

/** Returns for how many milliseconds an image must not be deployed after `failures` pulls in a row that were too slow. */
export function slowImageBackOffMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 10), DAY_MS);
}

/**
 * Returns the name under which slow pulls of an image are counted: on Docker Hub its repository, on any other registry the registry's
 * domain or network. A renter can change tags at will, and on a registry of their own also repositories, ports and host names.
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
