import type { Clock } from '../../../shared/clock.js';
import type { Use } from '../../../shared/measurement.js';
import { recent } from '../../../shared/recent.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { isNew, mergeUses, packUses, unpackUses, type TimedUse } from '../../domain/instances/measurement.js';
import { ReportBudget } from '../connections/report-budget.js';

/** How long minutes wait in memory, so that one row is written for many of them. After a restart, agents send the last ones again. */
const WAIT_MS = 10 * MINUTE_MS;
/** While the database cannot be written. */
const MOST_WAITING = 120;
/** Instances beyond these have no newest minute until they are heard of again. */
const MOST_INSTANCES = 50_000;
/** A minute that is older is not the present use. */
const PRESENT_MS = 3 * MINUTE_MS;

interface Waiting {
  /** Each is packed: that takes a tenth of the memory. */
  minutes: { at: number; data: Buffer }[];
  dueAt: number;
}

/** What this control plane has heard of instances' use and not written yet, and the newest minute of each. */
export class MeasurementMemory {
  /** By instance; the one that has waited longest first. */
  private readonly waiting = new Map<string, Waiting>();
  private readonly newest = recent<{ heardAt: number; use: Use }>(MOST_INSTANCES);

  private readonly budget: ReportBudget;

  constructor(private readonly clock: Clock) {
    this.budget = new ReportBudget(clock);
  }

  /** Tells whether a host may send one more report now. */
  admits(machineId: string): boolean {
    return this.budget.admits(machineId);
  }

  /** Keeps minutes of an instance until they are written. `now`: milliseconds since 1970. */
  add(instanceId: string, minutes: readonly TimedUse[], now: number): void {
    const at = this.clock.monotonic();
    const waiting = this.waiting.get(instanceId) ?? { minutes: [], dueAt: at + WAIT_MS };
    for (const minute of minutes) {
      if (isNew(waiting.minutes, minute.at)) waiting.minutes.push({ at: minute.at, data: packUses([minute]) });
      if (waiting.minutes.length > MOST_WAITING) waiting.minutes.shift();
    }
    this.waiting.set(instanceId, waiting);
    const last = minutes.at(-1);
    if (last) this.newest.set(instanceId, { heardAt: at - (now - last.at), use: last.use });
  }

  /** Returns the minutes of an instance that are not written yet, the oldest first. */
  of(instanceId: string): TimedUse[] {
    const { minutes = [] } = this.waiting.get(instanceId) ?? {};
    return mergeUses(
      [],
      minutes.flatMap(({ data }) => unpackUses(data)),
    );
  }

  /** Returns at most `most` instances whose minutes have waited long enough. */
  due(most: number): string[] {
    const due: string[] = [];
    for (const [instanceId, { dueAt }] of this.waiting) {
      if (due.length === most || dueAt > this.clock.monotonic()) break;
      due.push(instanceId);
    }
    return due;
  }

  /** Returns the instances of which minutes wait. */
  all(): string[] {
    return [...this.waiting.keys()];
  }

  /** Forgets minutes that are written now. */
  drop(instanceId: string): void {
    this.waiting.delete(instanceId);
  }

  /** Returns what an instance has used in its newest minute; undefined: it was not measured lately. */
  present(instanceId: string): Use | undefined {
    const newest = this.newest.get(instanceId);
    return newest && this.clock.monotonic() - newest.heardAt <= PRESENT_MS ? newest.use : undefined;
  }
}

export interface HasMeasurements {
  measurements: MeasurementMemory;
}
