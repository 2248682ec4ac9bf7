import { known, textIn } from '../../../data/address.js';

export interface MachinesSearch {
  /** The beginning of a name. */
  find?: string;
  /** Only machines whose agent is older than the control plane. */
  outdated?: true;
}

/** Reads the address; what it does not know is left out. */
export function machinesSearch({ find, outdated }: Record<string, unknown>): MachinesSearch {
  return known({ find: textIn(find, 64), outdated: outdated === true ? (true as const) : undefined });
}

/** Returns the choice as the API takes it. */
export function filterOf({ find, outdated }: MachinesSearch) {
  return known({ name: find, outdated });
}
