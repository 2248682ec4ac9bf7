import { known, textIn } from '../../../../data/forms/address.js';

export const DAYS = [7, 30, 90, 366] as const;

/** Which charges are shown. */
export interface RevenueSearch {
  /** The last so many days of use, with today; without it, 30. */
  days?: (typeof DAYS)[number];
  /** The id of a machine. */
  machine?: string;
}

/** Reads the address; what it does not know is left out. */
export function revenueSearch({ days, machine }: Record<string, unknown>): RevenueSearch {
  return known({ days: DAYS.find((each) => each === days), machine: textIn(machine, 64) });
}
