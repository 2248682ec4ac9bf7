/** A fault of a GPU that the NVIDIA driver has written to the kernel's log. */
export interface Xid {
  /** For example `0000:3b:00`. */
  pciAddress: string;
  number: number;
  text: string;
}

/** Faults of the program that used the GPU, not of the GPU. */
const HARMLESS = new Set([13, 31, 43, 45, 68, 109]);

/** The number with which the driver tells how it wants a GPU to be recovered. */
export const RECOVERY_ACTION = 154;

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

/** Tells whether the driver withdraws with it what it asked for before: "GPU recovery action changed from ... to 0x0 (None)". */
export function isWithdrawal({ number, text }: Xid): boolean {
  return number === RECOVERY_ACTION && /\bto (0x0\b|none\b)/i.test(text);
}
