/** A fault of a GPU that the NVIDIA driver has noted in the kernel's log. */
export interface Xid {
  /** Such as `0000:3b:00`. */
  pciAddress: string;
  number: number;
  text: string;
}

/** Faults of the program that ran, not of the GPU. */
const HARMLESS = new Set([13, 31, 43, 45, 68, 109]);

/** The faults in the kernel's log that speak against the GPU itself. */
export function parseXids(kernelLog: string): Xid[] {
  const lines = kernelLog.matchAll(/NVRM: Xid \((?:PCI:)?([0-9a-f:.]+)\): (\d+),? *(.*)/gi);
  return [...lines]
    .map(([, address = '', number = '', text = '']) => ({
      pciAddress: address.toLowerCase().replace(/\.[0-9a-f]$/, ''),
      number: Number(number),
      text: text.trim(),
    }))
    .filter((xid) => !HARMLESS.has(xid.number));
}
