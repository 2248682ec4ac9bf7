/** Fewer hosts come back at once without being noticed: their own back-off spreads them enough. */
const FEW_HOSTS = 500;
/** The control plane welcomes about one host in this time. */
const MS_PER_HOST = 1;
/** Hosts that are away for longer count as not connected. */
const LONGEST_MS = 20_000;

/** Returns over how many milliseconds `hosts` spread their dialing after the control plane was down; 0: not at all. */
export function redialSpreadMs(hosts: number): number {
  return hosts <= FEW_HOSTS ? 0 : Math.min(hosts * MS_PER_HOST, LONGEST_MS);
}
