import { changeInstance } from '../../../control-plane/services/actions/change-instance.js';
import { readSpendCaps, setSpendCaps } from '../../../control-plane/services/billing/caps/spend-caps.js';
import { receiveMeasurements } from '../../../control-plane/services/reconciler/measurements.js';
import { MeasurementReport } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { Marketplace } from './marketplace.js';

export const CAPS_OF = ['organization', 'key', 'other key', 'all'] as const;
/** `all`: each gets a cap, which can be used up in the same millisecond. */
type CapOf = (typeof CAPS_OF)[number];

/** A marketplace in which the renter limits instances, and what the organization spends. A host that is heard has said everything before. */
export class LimitedMarketplace extends Marketplace {
  /** Limits an instance, from now on, to so many more seconds and micro-dollars. */
  limit(id: string, seconds: number | null, micro: number | null): void {
    this.beat();
    this.request(({ platform }) => {
      const stop_at = seconds === null ? null : this.clock.now() + seconds * 1_000 + 7;
      const max_charge_micro = micro === null ? null : this.spentBy(id) + micro;
      changeInstance(platform, this.renter, id, { stop_at, max_charge_micro });
      const instance = this.reference.instances.get(id);
      const maxCharge = max_charge_micro === null ? null : BigInt(max_charge_micro);
      // What the limit before has not stopped goes on.
      if (instance) Object.assign(instance, { stopAt: stop_at, maxCharge, isHalted: false });
    });
  }

  /** Limits an instance while the host is silent: its use of before is told later. */
  limitUnheard(id: string, seconds: number, limits: readonly (number | null)[]): void {
    this.disconnect();
    for (const micro of limits) {
      this.advance(seconds);
      this.limit(id, null, micro);
    }
    this.advance(seconds);
    this.connect();
  }

  /** Lets the organization, an API key or all of them spend so much more today and in this month, from now on. */
  cap(whose: CapOf, day: number | null, month: number | null): void {
    this.beat();
    for (const key of ['key', 'other key'] as const)
      if (whose === key || whose === 'all') this.capOne(this.keys[key], day, month);
    if (whose === 'organization' || whose === 'all') this.capOne(null, day, month);
  }

  private capOne(apiKeyId: string | null, day: number | null, month: number | null): void {
    this.request(({ platform }) => {
      const { spent_day_micro, spent_month_micro } = readSpendCaps(platform, this.renter, apiKeyId);
      const caps = {
        day_micro: day === null ? null : spent_day_micro + day,
        month_micro: month === null ? null : spent_month_micro + month,
      };
      setSpendCaps(platform, this.renter, apiKeyId, { burn_per_hour_micro: null, ...caps });
      const { day_micro, month_micro } = caps;
      this.reference.cap(apiKeyId, {
        day: day_micro === null ? null : BigInt(day_micro),
        month: month_micro === null ? null : BigInt(month_micro),
      });
    });
  }

  /** Takes the caps away: while a host is silent, disks use them up, and what it tells later is charged to what is left then. */
  uncap(): void {
    this.cap('all', null, null);
  }

  /** For so many minutes the host says that nobody uses an instance, which ends it in that time. */
  idle(id: string, minutes: number): void {
    this.request(({ platform }) => changeInstance(platform, this.renter, id, { idle_stop_minutes: minutes }));
    for (let minute = 0; minute <= minutes; minute++) {
      this.advance(60);
      if (this.workloads.get(id)?.isUp) this.measure(id);
    }
    this.request(({ platform }) => changeInstance(platform, this.renter, id, { idle_stop_minutes: null }));
  }

  private measure(instanceId: string): void {
    const nothing = {
      cpuMaxMillis: 0,
      cpuLimitMillis: 1_000,
      sshSessions: 0,
      portConnections: 0,
      connectionsOpened: 0,
    };
    const minute = { ...nothing, endedMsAgo: 0, gpus: [{ useMaxPercent: 0 }] };
    const report = MeasurementReport.fromPartial({ instances: [{ instanceId, minutes: [minute] }] });
    this.request(({ platform }) => receiveMeasurements(platform, this.machineId, report));
  }
}
