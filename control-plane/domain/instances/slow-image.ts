import { DOCKER_HUB, canonicalName, parseImageReference } from '../../../shared/image-reference.js';
import { DAY_MS, MINUTE_MS } from '../../../shared/time.js';
import { networkOf } from '../network.js';

const FIRST_MS = 10 * MINUTE_MS;
/** Failures are forgotten so long after the image can be tried again. */
export const SLOW_IMAGE_MEMORY_MS = DAY_MS;

/** Returns for how many milliseconds an image must not be deployed after `failures` pulls in a row that were too slow. */
export function slowImageBackOffMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 10), DAY_MS);
}

/** How often one machine was too slow to pull from a source, in a row. All times are milliseconds since 1970. */
export interface SlowPulls {
  machine_id: string;
  failures: number;
  failed_at: number;
  retry_at: number;
}

/** What holds a source back: until when, after how many failures, and whether only on the machine that has failed. */
export interface HeldBack {
  until: number;
  failures: number;
  isOnlyThere: boolean;
}

/**
 * Returns what holds deploys from a source back on a machine, or undefined. One machine holds them back on itself alone, because it can
 * lie, or have a bad line. Two that were too slow hold them back everywhere.
 */
export function heldBackOn(machineId: string, known: readonly SlowPulls[], now: number): HeldBack | undefined {
  // A failure in the future dates from before the clock was set back.
  const inForce = known.filter(({ failed_at, retry_at }) => failed_at <= now && now < retry_at);
  const here = inForce.find(({ machine_id }) => machine_id === machineId);
  const [, second] = [...inForce].sort((a, b) => b.retry_at - a.retry_at);
  const longest = here && (!second || here.retry_at > second.retry_at) ? here : second;
  return longest && { until: longest.retry_at, failures: longest.failures, isOnlyThere: second === undefined };
}

/**
 * Returns how many failures count for a machine on which a pull has failed now: what another machine has failed, too, counts for all.
 * Pulls that were under way together count as one failure. Null: this one was counted already.
 */
export function failuresAfter(
  { machineId, deployedAt }: { machineId: string; deployedAt: number },
  known: readonly SlowPulls[],
): number | null {
  const here = known.find(({ machine_id }) => machine_id === machineId);
  if (here && deployedAt < here.failed_at) return null;
  const [, agreed = 0] = known.map(({ failures }) => failures).sort((a, b) => b - a);
  const wasUnderWay = known.some(({ failed_at }) => deployedAt < failed_at);
  if (here === undefined && wasUnderWay) return Math.max(agreed, 1);
  return Math.max(here?.failures ?? 0, agreed) + 1;
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
