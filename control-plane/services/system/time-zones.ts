import { createRequire } from 'node:module';
import type * as Luxon from 'luxon';
import { recent } from '../../../shared/recent.js';
import { MINUTE_MS } from '../../../shared/time.js';
import type { ZoneOffset } from '../../domain/instances/schedule.js';

/** The library is loaded with the first schedule: a start of the control plane needs none. */
const load = createRequire(import.meta.url);

/** Most names that are remembered. */
const MOST_NAMES = 1_000;

const zones = recent<ZoneOffset>(MOST_NAMES);

/** Returns the time zone with this name of the IANA database, in any case of letters; undefined: this release knows none. */
export function findZone(name: string): ZoneOffset | undefined {
  const known = zones.get(name);
  if (known) return known;
  const canonical = canonicalName(name);
  if (canonical === undefined) return undefined;
  // The library keeps each name for ever, and a name can be written in upper and lower case in very many ways.
  const { IANAZone } = load('luxon') as typeof Luxon;
  const zone = IANAZone.create(canonical);
  const offset: ZoneOffset = (at) => Math.round(zone.offset(at) * MINUTE_MS);
  zones.set(name, offset);
  return offset;
}

/** Returns the version of the time zone database, which comes with Node. */
export function zonesVersion(): string {
  return process.versions['tz'] ?? process.version;
}

function canonicalName(timeZone: string): string | undefined {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone }).resolvedOptions().timeZone;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
