import { known, textIn, wordIn } from '../../../data/address.js';
import type { OperatedInstance } from '../models.js';

export type Status = OperatedInstance['status'];

/** Which instances the list shows. */
export interface InstancesSearch {
  status?: Status;
  /** Only those that wait for their host. */
  waiting?: true;
  /** Ids. */
  organization?: string;
  machine?: string;
}

/** Destroyed instances are not in the list. */
export const STATUSES = [
  ...(['creating', 'running', 'stopping', 'stopped', 'starting', 'destroying', 'error'] as const),
] satisfies readonly Status[];

/** Reads the address; what it does not know is left out. */
export function operatedInstancesSearch(given: Record<string, unknown>): InstancesSearch {
  return known({
    status: wordIn(STATUSES, given['status']),
    waiting: given['waiting'] === true ? (true as const) : undefined,
    ...{ organization: textIn(given['organization'], 64), machine: textIn(given['machine'], 64) },
  });
}

/** Returns the choice as the API takes it. */
export function filterOf({ status, waiting, organization, machine }: InstancesSearch) {
  return known({ status, waiting, organization_id: organization, machine_id: machine });
}
