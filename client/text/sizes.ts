const MIB = 1_024 * 1_024;

/** Returns a number of bytes in its largest binary unit: `1.5 GiB`. */
export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = count < 1 ? 0 : Math.min(Math.floor(Math.log2(count) / 10), units.length - 1);
  const value = count / 1_024 ** power;
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}

/** Returns a memory that is given in MiB: `80 GiB`. */
export function memory(mib: number): string {
  return bytes(mib * MIB);
}

/** Returns a number of processor cores with its unit: `0.25 CPU cores`, `1 CPU core`. */
export function cpuCores(count: number): string {
  return `${cores(count)} ${count === 1 ? 'CPU core' : 'CPU cores'}`;
}

/** Returns a number of processor cores, rounded down to hundredths: `21.33`. */
export function cores(count: number): string {
  return String(Math.floor(Math.round(count * 1_000) / 10) / 100);
}
