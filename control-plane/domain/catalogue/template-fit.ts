import { isNewerVersion } from '../machines/machine.js';

/** The processor architecture of every machine. */
export const SUPPORTED_ARCH = 'x86_64';

/** What a template needs of the machine that runs it. */
export interface TemplateNeeds {
  kind: 'container' | 'vm';
  arch: string;
  cuda_max: string | null;
  cuda_min: string | null;
  /** Above zero: it is announced, and runs nowhere. */
  coming_soon: number;
}

/** What a machine has of that. */
export interface MachineAbilities {
  vm_capable: number;
  cuda_version: string | null;
}

/** Tells whether a template is a virtual machine and the machine runs none. */
export function needsVms({ kind }: TemplateNeeds, { vm_capable }: MachineAbilities): boolean {
  return kind === 'vm' && vm_capable === 0;
}

/** Tells whether the CUDA version of a machine is newer than the newest that a template supports, as far as both are known. */
export function needsOlderCuda({ cuda_max }: TemplateNeeds, { cuda_version }: MachineAbilities): boolean {
  return cuda_max !== null && cuda_version !== null && isNewerVersion(cuda_version, cuda_max);
}

/** Tells whether the CUDA version of a machine is older than the oldest that a template supports, as far as both are known. */
export function needsNewerCuda({ cuda_min }: TemplateNeeds, { cuda_version }: MachineAbilities): boolean {
  return cuda_min !== null && cuda_version !== null && isNewerVersion(cuda_min, cuda_version);
}

/** Tells whether a machine can run a template, whatever else would be refused. */
export function fits(needs: TemplateNeeds, machine: MachineAbilities): boolean {
  const isRunnable = needs.coming_soon === 0 && needs.arch === SUPPORTED_ARCH;
  const hasCuda = !needsOlderCuda(needs, machine) && !needsNewerCuda(needs, machine);
  return isRunnable && !needsVms(needs, machine) && hasCuda;
}
