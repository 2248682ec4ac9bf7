export interface MachinesSearch {
  /** Only machines whose agent is older than the control plane. */
  outdated?: boolean;
}

export function machinesSearch({ outdated }: Record<string, unknown>): MachinesSearch {
  return outdated === true ? { outdated } : {};
}
