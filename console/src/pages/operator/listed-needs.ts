import type { MachineNeed, OrganizationNeed } from './models.js';

/** Why a machine is on a list of those that need an act. */
export const MACHINE_NEEDS: Readonly<Record<MachineNeed, string>> = {
  machine_away: 'away',
  machine_lost: 'lost and not removed',
  machine_refusing: 'takes no instances',
  commands_failing: 'commands of several organizations fail',
  gpus_unhealthy: 'has unhealthy GPUs',
  gpus_disputed: 'reports GPUs of other machines',
  disks_unlimited: 'does not limit disks',
  clock_off: 'has a wrong clock',
};
export const ORGANIZATION_NEEDS: Readonly<Record<OrganizationNeed, string>> = {
  payment_disputed: 'disputes a payment',
  organization_suspended: 'suspended, and still has something',
  admin_refused: 'last admin refused by their company',
};
