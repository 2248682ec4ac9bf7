import { MEASURED_FIELDS, MEASURED_GPU_FIELDS, unmeasured, type Use } from '../../../shared/measurement.js';
import { DAY_MS, HOUR_MS } from '../../../shared/time.js';

/** What an instance has used in a span of time; `at`: its end, in milliseconds since 1970. */
export interface TimedUse {
  at: number;
  use: Use;
}

/** The rows that keep measurements: an hour of minutes, or a day of hours. */
export type Grain = 'minute' | 'hour';
export const SPAN_OF_ROW_MS: Readonly<Record<Grain, number>> = { minute: HOUR_MS, hour: DAY_MS };
/** How long each grain can be read. */
export const KEPT_MS: Readonly<Record<Grain, number>> = { minute: DAY_MS, hour: 90 * DAY_MS };

/** Minutes of one instance are at least this far apart: a host that sends more gets no more room, and may send some again. */
export const SPACING_MS = 30_000;

/** Returns all kept uses, and the added ones that are not too close to another, the oldest first. */
export function mergeUses(kept: readonly TimedUse[], added: readonly TimedUse[]): TimedUse[] {
  const merged = [...kept];
  for (const each of added) {
    if (isNew(merged, each.at)) merged.push(each);
  }
  return merged.sort((one, other) => one.at - other.at);
}

/** Tells whether a use is far enough from others. */
export function isNew(others: readonly Pick<TimedUse, 'at'>[], at: number): boolean {
  return others.every((other) => Math.abs(at - other.at) >= SPACING_MS);
}

/** Returns when the row begins to which a span belongs that ends at `at`. */
export function rowOf(grain: Grain, at: number): number {
  const span = SPAN_OF_ROW_MS[grain];
  return Math.floor((at - 1) / span) * span;
}

const VERSION = 1;

/**
 * Packs uses into few bytes: each value is stored as its difference from the one before, because most change little. A minute of one
 * GPU takes about 35 bytes.
 */
export function packUses(uses: readonly TimedUse[]): Buffer {
  const bytes: number[] = [VERSION];
  let before: TimedUse = { at: 0, use: unmeasured(0) };
  for (const each of uses) {
    writeNumber(bytes, each.at - before.at);
    writeNumber(bytes, each.use.gpus.length);
    for (const name of MEASURED_FIELDS) writeNumber(bytes, stored(each.use[name]) - stored(before.use[name]));
    for (const [index, gpu] of each.use.gpus.entries())
      for (const name of MEASURED_GPU_FIELDS)
        writeNumber(bytes, stored(gpu[name]) - stored(before.use.gpus[index]?.[name] ?? null));
    before = each;
  }
  return Buffer.from(bytes);
}

/** Unpacks {@link packUses}. Throws if the bytes are not such uses. */
export function unpackUses(bytes: Buffer): TimedUse[] {
  if (bytes[0] !== VERSION) throw new Error(`measurements of an unknown version, ${bytes[0] ?? 'none'}`);
  const reader = { bytes, next: 1 };
  const uses: TimedUse[] = [];
  let before: TimedUse = { at: 0, use: unmeasured(0) };
  while (reader.next < bytes.length) {
    const at = before.at + readNumber(reader);
    const use = unmeasured(readNumber(reader));
    for (const name of MEASURED_FIELDS) use[name] = loaded(stored(before.use[name]) + readNumber(reader));
    for (const [index, gpu] of use.gpus.entries())
      for (const name of MEASURED_GPU_FIELDS)
        gpu[name] = loaded(stored(before.use.gpus[index]?.[name] ?? null) + readNumber(reader));
    before = { at, use };
    uses.push(before);
  }
  return uses;
}

/** 0 stands for what was not measured. */
function stored(value: number | null): number {
  return value === null ? 0 : value + 1;
}

function loaded(value: number): number | null {
  return value === 0 ? null : value - 1;
}

/** Writes a whole number, seven bits a byte, lowest first; the sign is the lowest bit. */
function writeNumber(bytes: number[], value: number): void {
  let rest = value < 0 ? -2 * value - 1 : 2 * value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}

function readNumber(reader: { bytes: Buffer; next: number }): number {
  let [value, unit] = [0, 1];
  for (;;) {
    const byte = reader.bytes[reader.next++];
    if (byte === undefined) throw new Error('measurements end too early');
    value += (byte % 128) * unit;
    if (byte < 128) return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
    unit *= 128;
  }
}
