import { createHash } from 'node:crypto';
import type { PortRange } from '../config.js';

/**
 * The ports of a range that are not in `used`, each once, beginning at a place that depends on `seed`: an instance's port is
 * not handed to the next one at once.
 */
export function candidatePorts(range: PortRange, used: ReadonlySet<number>, seed: string): number[] {
  const size = range.last - range.first + 1;
  const start = createHash('sha256').update(seed).digest().readUInt32BE(0) % size;
  return Array.from({ length: size }, (_, i) => range.first + ((start + i) % size)).filter((port) => !used.has(port));
}
