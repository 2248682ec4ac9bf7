import type { MachineNeed } from '../../domain/machines/need.js';
import type { Platform } from '../system/platform.js';
import { countHosts, type Overview } from './counts.js';
import type { HasFleet } from './fleet.js';
import { sumGpus, type GpuSum } from './gpu-sums.js';
import type { Need } from './need.js';
import { machinesInNeed } from './machine-needs.js';
import { readNeeds, type Signals } from './needs.js';

export interface OperatorOverview {
  machines: Overview['hosts'];
  gpus: GpuSum[];
  needs: Need[];
}

/** Returns, for an operator, how the marketplace is and what needs an act now. Its size does not grow with the marketplace. */
export function getOperatorOverview(platform: Platform & HasFleet, signals: Signals): OperatorOverview {
  const fleet = [...platform.fleet.machines()];
  return platform.store.transact((tx) => ({
    machines: countHosts(platform, fleet),
    gpus: sumGpus(platform, fleet, tx.now),
    needs: readNeeds(platform, tx, fleet, signals),
  }));
}

/** Returns the ids of the machines that need an act for a reason, as the overview counts them. */
export function idsInNeed(platform: Platform & HasFleet, need: MachineNeed, { failingHosts }: Signals): string[] {
  const fleet = [...platform.fleet.machines()];
  return machinesInNeed(platform, fleet, failingHosts)[need].map(({ machine }) => machine.id);
}
