import type { Clock } from '../../../shared/clock.js';
import { MINUTE_MS } from '../../../shared/time.js';

const WINDOW_MS = 15 * MINUTE_MS;
/** One or two organizations can cause their own failures; if commands of three fail, the host is the likely cause. */
const SEVERAL = 3;

/** Knows the hosts on which commands of three organizations failed in the last 15 minutes. Kept in memory; a restart clears it. */
export class FailingHosts {
  /** Per machine, the last failure of each organization, oldest first. At most {@link SEVERAL} organizations per machine. */
  private readonly failed = new Map<string, Map<string, number>>();

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  note(machineId: string, organizationId: string): void {
    this.forget();
    const organizations = this.failed.get(machineId) ?? new Map<string, number>();
    this.failed.set(machineId, organizations);
    organizations.delete(organizationId);
    organizations.set(organizationId, this.clock.monotonic());
    const [oldest] = organizations.keys();
    if (organizations.size > SEVERAL && oldest !== undefined) organizations.delete(oldest);
  }

  /** Returns the ids of their machines. */
  ids(): string[] {
    this.forget();
    return [...this.failed].filter(([, organizations]) => organizations.size >= SEVERAL).map(([id]) => id);
  }

  private forget(): void {
    const since = this.clock.monotonic() - WINDOW_MS;
    for (const [machineId, organizations] of this.failed) {
      for (const [organizationId, at] of organizations) if (at <= since) organizations.delete(organizationId);
      if (organizations.size === 0) this.failed.delete(machineId);
    }
  }
}
