/** From this difference on, an operator has to set a clock. The alert of packaging/alerts.yml has the same limit. */
export const CLOCK_OFF_MS = 2_000;
/** How many heartbeats a difference is taken from: those of a minute. */
const HEARTBEATS = 6;

/** By how much clocks of a host are ahead of the control plane's, in milliseconds; negative: they are behind. */
export interface ClockDifference {
  host: number;
  /** Null: the host has not compared Docker's clock with its own. */
  docker: number | null;
}

/** Measures the difference of a host's clock by its heartbeats. */
export class ClockMeasurement {
  private readonly recent: number[] = [];
  private dockerAhead: number | null = null;

  /**
   * Notes a heartbeat that was sent at `sentAt` by the host's clock and arrived at `arrivedAt` by the control plane's, and by how much
   * Docker's clock is ahead of the host's. Returns whether {@link isOff} has changed.
   */
  note(sentAt: number, arrivedAt: number, dockerAhead: number | null): boolean {
    const wasOff = isOff(this.difference);
    this.recent.push(Math.round(sentAt - arrivedAt));
    if (this.recent.length > HEARTBEATS) this.recent.shift();
    this.dockerAhead = dockerAhead;
    return isOff(this.difference) !== wasOff;
  }

  /** The difference; null before the first heartbeat. A delay makes a clock look behind, so the least delayed heartbeat counts. */
  get difference(): ClockDifference | null {
    if (this.recent.length === 0) return null;
    const host = Math.max(...this.recent);
    return { host, docker: this.dockerAhead === null ? null : host + this.dockerAhead };
  }
}

/** Tells whether a clock of a host is so wrong that an operator has to set it. */
export function isOff(difference: ClockDifference | null): boolean {
  return Math.max(Math.abs(difference?.host ?? 0), Math.abs(difference?.docker ?? 0)) > CLOCK_OFF_MS;
}

/** So many hosts have to contradict the control plane's clock: one alone could be wrong, or lie. */
export const LEAST_WITNESSES = 2;

/**
 * Returns by how much the clocks of hosts say that the control plane's is ahead, in milliseconds, negative: behind, where more than
 * half of those that were heard say the same way that it is by more than `limitMs`: the median of what these say. Otherwise null.
 * `aheadMs`: by how much the clock of each host that was heard is ahead of the control plane's.
 */
export function contradiction(aheadMs: readonly number[], limitMs: number): number | null {
  for (const way of [1, -1]) {
    const agreed = aheadMs.filter((ms) => ms * way > limitMs).sort((one, other) => one - other);
    if (agreed.length < LEAST_WITNESSES || 2 * agreed.length <= aheadMs.length) continue;
    return -(agreed[Math.floor(agreed.length / 2)] ?? 0);
  }
  return null;
}
