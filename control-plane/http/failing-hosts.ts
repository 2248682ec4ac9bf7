import type { Clock } from '../../shared/clock.js';
import { MINUTE_MS } from '../../shared/time.js';

const WINDOW_MS = 15 * MINUTE_MS;
/** What fails for one or two renters may be theirs; what fails for three is their host's. */
const SEVERAL = 3;

/** On which hosts commands of several organizations have failed lately. In memory: a restart forgets. */
export class FailingHosts {
  /** By machine: when a command of each organization has failed there last, the oldest first; no more than tell. */
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

  get count(): number {
    this.forget();
    return [...this.failed.values()].filter((organizations) => organizations.size >= SEVERAL).length;
  }

  private forget(): void {
    const since = this.clock.monotonic() - WINDOW_MS;
    for (const [machineId, organizations] of this.failed) {
      for (const [organizationId, at] of organizations) if (at <= since) organizations.delete(organizationId);
      if (organizations.size === 0) this.failed.delete(machineId);
    }
  }
}
