export interface AddMachineSearch {
  /** Machines that have enrolled since then are shown, ISO 8601. */
  since?: string;
}

export function addMachineSearch({ since }: Record<string, unknown>): AddMachineSearch {
  return typeof since === 'string' && !Number.isNaN(Date.parse(since)) ? { since } : {};
}
