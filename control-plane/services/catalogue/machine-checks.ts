import { isNewerVersion } from '../../domain/machine.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import type { OfferDetails } from './offer-details.js';

/** What of a template decides which machines can run it. */
export type MachineNeeds = Pick<Row<'templates'>, 'kind' | 'cuda_max'>;

type Machine = Pick<OfferDetails['machine'], 'vm_capable' | 'cuda_version'>;

/** Each check of a template against the machine of an offer, in the order of API rule 18. Each returns its refusal; undefined: it fits. */
export const MACHINE_CHECKS: readonly ((needs: MachineNeeds, machine: Machine) => Refusal | undefined)[] = [
  notVmCapable,
  tooNewCuda,
];

/** Tells whether a machine can run a template. */
export function canRun(machine: Machine, needs: MachineNeeds): boolean {
  return MACHINE_CHECKS.every((check) => check(needs, machine) === undefined);
}

function notVmCapable({ kind }: MachineNeeds, machine: Machine): Refusal | undefined {
  if (kind !== 'vm' || machine.vm_capable) return undefined;
  return new Refusal(
    'OFFER_NOT_VM_CAPABLE',
    'the machine of this offer cannot run virtual machines; choose an offer with vm_capable',
  );
}

function tooNewCuda({ cuda_max: most }: MachineNeeds, machine: Machine): Refusal | undefined {
  const { cuda_version: version } = machine;
  if (most === null || version === null || !isNewerVersion(version, most)) return undefined;
  return new Refusal(
    'TEMPLATE_CUDA_TOO_NEW',
    `this template supports CUDA up to ${most}, but the machine has ${version}; choose another offer`,
  );
}
