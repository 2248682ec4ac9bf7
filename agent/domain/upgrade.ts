import { MIB } from '../../shared/bytes.js';
import { plainLine } from '../../shared/plain-text.js';
import { isNewer, isVersion } from '../../shared/release/newer.js';
import { MINUTE_MS } from '../../shared/time.js';

/** How large the files of a release can be together. */
export const MOST_BYTES = 1024 * MIB;
/** What stays free on the disk while a release is loaded: the journal needs room, and an upgrade unpacks the release. */
export const ROOM_BYTES = 1024 * MIB;
/** How long the reason of a failure can be, in characters. */
export const LONGEST_REASON = 500;
/** How much of what calls itself a version is repeated, in characters. */
const LONGEST_SHOWN = 64;
/** A control plane that has not heard of a failure yet may ask again at once. */
const SAME_FAILURE_MS = MINUTE_MS;

/** An upgrade that has failed; `at` in ms since 1970 UTC. */
export interface FailedUpgrade {
  version: string;
  reason: string;
  at: number;
}

/** Returns why an agent of version `own` does not upgrade itself to `version`; undefined: it does. `obstacles`: why it upgrades to none. */
export function upgradeRefusal(version: string, own: string, obstacles: readonly string[]): string | undefined {
  if (obstacles.length > 0) return `this host does not upgrade itself: ${obstacles.join('; ')}`;
  if (!isVersion(version)) return 'the control plane names no valid version';
  if (!isNewer(version, own)) return `version ${version} is not higher than ${own}, which this host has`;
  return undefined;
}

/** Tells whether a failure is so recent that the same upgrade, asked for again, is not tried again. */
export function stillCounts(failure: FailedUpgrade | undefined, version: string, now: number): boolean {
  return failure?.version === version && Math.abs(now - failure.at) < SAME_FAILURE_MS;
}

/** Returns what a control plane calls a version, as it can be sent back and logged. */
export function shownVersion(version: string): string {
  return plainLine(version, LONGEST_SHOWN);
}

/** What a control plane says of a file before it sends it. */
export interface Announced {
  name: string;
  size: number;
}

/** Returns why a file that the control plane announces is not loaded; undefined: it is. */
export function announcementFault(
  { name, size }: Announced,
  wanted: { name: string; mostBytes: number; loadedBytes: number },
): string | undefined {
  if (name !== wanted.name) return `the control plane gives ${shownVersion(name)} instead of ${wanted.name}`;
  if (size === 0) return `${name} is empty`;
  if (size > wanted.mostBytes) return `${name} is too large for a release: ${size} bytes`;
  if (size < wanted.loadedBytes) return `${name} has become shorter while it was loaded`;
  return undefined;
}

/** Returns why a disk cannot take what is still to be loaded; undefined: it can. */
export function roomFault(freeBytes: number, missingBytes: number): string | undefined {
  if (freeBytes >= missingBytes + ROOM_BYTES) return undefined;
  const inMib = (bytes: number) => Math.ceil(bytes / MIB);
  return `the disk of this host has ${inMib(freeBytes)} MiB free, and the upgrade needs ${inMib(missingBytes + ROOM_BYTES)} MiB`;
}

/** Returns the failure that a file tells of; undefined: it tells of none. */
export function parseFailure(text: string): FailedUpgrade | undefined {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { version, reason, at } = (said ?? {}) as Record<string, unknown>;
  if (typeof version !== 'string' || !isVersion(version)) return undefined;
  if (typeof reason !== 'string' || typeof at !== 'number') return undefined;
  return { version, reason: plainLine(reason, LONGEST_REASON), at };
}
