/** Inclusive. */
export interface PortRange {
  first: number;
  last: number;
}

/** The ports of a range that are not in `used`, each once, beginning `offset` ports into it. */
export function candidatePorts(range: PortRange, used: ReadonlySet<number>, offset: number): number[] {
  const size = range.last - range.first + 1;
  return Array.from({ length: size }, (_, i) => range.first + ((offset + i) % size)).filter((port) => !used.has(port));
}
