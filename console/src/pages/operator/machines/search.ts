import { known, textIn, wordIn } from '../../../data/forms/address.js';
import type { MachineNeed } from '../models.js';
import { MACHINE_NEEDS } from '../listed-needs.js';

export interface MachinesSearch {
  /** The beginning of a name. */
  find?: string;
  /** Only machines whose agent is older than the control plane. */
  outdated?: true;
  /** Only machines that need an act for this reason. */
  need?: MachineNeed;
}

const NEEDS = Object.keys(MACHINE_NEEDS) as MachineNeed[];

/** Reads the address; what it does not know is left out. */
export function machinesSearch({ find, outdated, need }: Record<string, unknown>): MachinesSearch {
  return known({
    find: textIn(find, 64),
    outdated: outdated === true ? (true as const) : undefined,
    need: wordIn(NEEDS, need),
  });
}

/** Returns the choice as the API takes it. */
export function filterOf({ find, outdated, need }: MachinesSearch) {
  return known({ name: find, outdated, need });
}
