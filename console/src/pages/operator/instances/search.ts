import { known, textIn, wordIn } from '../../../data/forms/address.js';
import type { OperatedInstance } from '../models.js';

type Status = OperatedInstance['status'];

/** Which instances the list shows. */
export interface InstancesSearch {
  /** The id of one instance, also where it is destroyed. */
  id?: string;
  status?: Status;
  /** Only those that wait for their host. */
  waiting?: true;
  /** Ids. */
  organization?: string;
  machine?: string;
}

/** Destroyed instances are not in the list, unless it is that of one id. */
export const STATUSES = [
  'creating',
  'running',
  'stopping',
  'stopped',
  'starting',
  'destroying',
  'error',
] as const satisfies readonly Status[];

/** Reads the address; what it does not know is left out. */
export function operatedInstancesSearch(given: Record<string, unknown>): InstancesSearch {
  return known({
    id: textIn(given['id'], 64),
    status: wordIn(STATUSES, given['status']),
    waiting: given['waiting'] === true ? (true as const) : undefined,
    organization: textIn(given['organization'], 64),
    machine: textIn(given['machine'], 64),
  });
}

/** The choice as the API takes it. */
export interface InstanceFilter {
  id?: string;
  status?: Status;
  waiting?: true;
  organization_id?: string;
  machine_id?: string;
}

export function filterOf({ organization, machine, ...rest }: InstancesSearch): InstanceFilter {
  return known({ ...rest, organization_id: organization, machine_id: machine });
}

/** Returns the choice as the address has it. */
export function searchOf({ organization_id, machine_id, ...rest }: InstanceFilter): InstancesSearch {
  return known({ ...rest, organization: organization_id, machine: machine_id });
}
