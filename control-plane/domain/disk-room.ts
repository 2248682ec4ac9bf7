import { MIB } from '../../shared/bytes.js';
import { Refusal } from './refusal.js';

/** The size of the reserve: many times what stops, destroys, sign-ins and settlements write until an operator makes room. */
export const RESERVE_BYTES = 64 * MIB;
/** How much one step frees or takes. Small, because other programs also use the space that becomes free on a full disk. */
export const STEP_BYTES = 4 * MIB;
/** With less than this, the disk counts as full: a busy marketplace writes less in a second. */
export const FULL_BELOW_BYTES = 8 * MIB;
/** From this on, it no longer counts as full: more than a step of the reserve can free. */
const ROOM_BYTES = 16 * MIB;
/** What the whole reserve must leave free. */
const AMPLE_BYTES = 32 * MIB;

/** What was found on the disk of the database. */
export interface DiskState {
  /** What this program can still write; null: that cannot be read. */
  freeBytes: number | null;
  reserveBytes: number;
  /** The size that the reserve is to have. */
  wantedBytes: number;
  /** Whether the disk counts as full up to now. */
  isFull: boolean;
}

export interface DiskDecision {
  isFull: boolean;
  /** What happens to the reserve. */
  reserve: 'grow' | 'release' | 'keep';
}

/** Decides whether the disk counts as full, and what happens to the reserve. */
export function decideRoom({ freeBytes, reserveBytes, wantedBytes, isFull }: DiskState): DiskDecision {
  if (freeBytes === null) return { isFull: false, reserve: 'keep' };
  if (freeBytes < FULL_BELOW_BYTES) return { isFull: true, reserve: reserveBytes > 0 ? 'release' : 'keep' };
  if (isFull && freeBytes < ROOM_BYTES) return { isFull: true, reserve: 'keep' };
  const isAmple = freeBytes >= wantedBytes - reserveBytes + AMPLE_BYTES;
  return { isFull: false, reserve: reserveBytes < wantedBytes && isAmple ? 'grow' : 'keep' };
}

/** Returns the refusal of what begins something while the disk of the database is full. */
export function diskFull(): Refusal {
  return new Refusal('UNAVAILABLE', DISK_FULL);
}

const DISK_FULL =
  'the disk of the control plane is full: until its operator has made room, you can only read, sign in, stop and destroy; try again later';
