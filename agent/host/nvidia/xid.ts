/** A fault of a GPU that the NVIDIA driver has written to the kernel's log. */
export interface Xid {
  /** For example `0000:3b:00`. */
  pciAddress: string;
  number: number;
  text: string;
}

/** Faults of the program that used the GPU, not of the GPU. */
const HARMLESS = new Set([13, 31, 43, 45, 68, 109]);

/** Returns the faults in the kernel's log that are faults of GPUs, not of programs. */
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
