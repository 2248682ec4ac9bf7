export type Accelerator = 'kvm' | 'tcg';

export interface VmSettings {
  /** What virtual machines run on; null: this host runs none. */
  accelerator: Accelerator | null;
  /** Name of the image that `scripts/build-vm-runner` has made. */
  runner: string;
  /** How long a guest may take to shut down. */
  stopSeconds: number;
}

export interface MachineSize {
  cpus: number;
  /** What the guest sees, in MiB; what is left of the slice is QEMU's own. */
  memoryMb: number;
}

/** The account that QEMU runs as, in the runner's image. */
export const RUNNER_ID = 64_000;
const LEAST_MEMORY_MB = 256;
const OWN_MB = 200;
const OWN_MB_PER_CPU = 8;
/** For page tables and buffers. */
const OWN_SHARE = 1 / 128;
/** Translated code, see the runner. */
const TCG_MB = 320;

/**
 * What of a slice a virtual machine gets, so that all of its container stays within the slice. Undefined where too little is
 * left to boot anything.
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
