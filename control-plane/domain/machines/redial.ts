/** Fewer hosts come back at once without being noticed: their own back-off spreads them enough. */
const FEW_HOSTS = 500;
/** One core of a slow server welcomes a host in about this time. Hosts that come faster wait, and give up and try again after 15 seconds. */
const MS_PER_HOST = 2;
/** A host that is silent for longer counts as not connected anyway. */
const LONGEST_MS = 30_000;

/** Returns over how many milliseconds `hosts` spread their dialing after the control plane was down; 0: not at all. */
export function redialSpreadMs(hosts: number): number {
  return hosts <= FEW_HOSTS ? 0 : Math.min(hosts * MS_PER_HOST, LONGEST_MS);
}
