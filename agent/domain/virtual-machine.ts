export type Accelerator = 'kvm' | 'tcg';

export interface VmSettings {
  /** How QEMU runs virtual machines; null: this host runs none. */
  accelerator: Accelerator | null;
  /** The name of the image that `scripts/build-vm-runner` builds. */
  runner: string;
  /** The grace of a guest, in seconds. */
  stopSeconds: number;
}

export interface MachineSize {
  cpus: number;
  /** The memory of the guest in MiB; the rest of the slice is for QEMU itself. */
  memoryMb: number;
}

/** The user id that QEMU runs as, in the runner's image. */
export const RUNNER_ID = 64_000;
const LEAST_MEMORY_MB = 256;
const OWN_MB = 200;
const OWN_MB_PER_CPU = 8;
/** The share of memory for page tables and buffers. */
const OWN_SHARE = 1 / 128;
/** Memory for translated code, see the runner. */
const TCG_MB = 320;

/**
 * Returns the part of a slice that a virtual machine gets, so that its whole container stays within the slice. Undefined if too little
 * memory is left to boot a guest.
 */
export function machineSize(
  { cpuMillis, memoryMb }: { cpuMillis: number; memoryMb: number },
  accelerator: Accelerator,
): MachineSize | undefined {
  const cpus = Math.max(Math.ceil(cpuMillis / 1000), 1);
  const own = OWN_MB + cpus * OWN_MB_PER_CPU + memoryMb * OWN_SHARE + (accelerator === 'tcg' ? TCG_MB : 0);
  const left = Math.floor(memoryMb - own);
  return left < LEAST_MEMORY_MB ? undefined : { cpus, memoryMb: left };
}
