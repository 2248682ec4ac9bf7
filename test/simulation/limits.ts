import type { InstanceLimits } from '../../control-plane/domain/instance-limits.js';
import { setSpendCaps } from '../../control-plane/services/billing/spend-caps.js';
import { TICK_MS } from './control-plane.js';
import { Random } from './random.js';
import { EPOCH_MS } from './timeline.js';
import { first, type Invariants, type View } from './view.js';
import type { World } from './world.js';

const MINUTE_MS = 60_000;
const SLACK_MS = 2 * TICK_MS;
/** The first organization, which has plenty, may spend so much in a day; the second in a month. */
const CAPS = [
  { day_micro: 100_000_000, month_micro: null },
  { day_micro: null, month_micro: 60_000_000 },
];

/** The limits that renters set, by random numbers of their own: the history of a seed does not depend on them otherwise. */
export class SimLimits {
  private readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed ^ 0x11417);
  }

  /** What a deploy says of limits. */
  next(now: number): Partial<InstanceLimits> {
    const { random } = this;
    return {
      ...(random.chance(0.4) ? { stop_at: now + random.between(1, 40 * MINUTE_MS) } : {}),
      ...(random.chance(0.5) ? { max_charge_micro: random.between(1, 20_000_000) } : {}),
      ...(random.chance(0.2) ? { on_limit: 'destroy' as const } : {}),
    };
  }

  /** Has admins set caps, once there is a market. */
  setCaps(world: World): void {
    for (const [index, caps] of CAPS.entries()) {
      const renter = world.renters[index];
      const all = { burn_per_hour_micro: null, ...caps };
      if (renter) world.attempt('caps', () => setSpendCaps(world.controlPlane.platform, renter, null, all));
    }
  }
}

interface LimitedRow {
  id: string;
  status: string;
  stop_at: number | null;
  max_charge_micro: number | null;
  spend_micro: number;
  gpu_micro: number;
}

const limited = (world: View['world']) =>
  world.rows<LimitedRow>(`
    SELECT id, status, stop_at, max_charge_micro, spend_micro, (
      SELECT coalesce(-sum(amount_micro), 0) FROM transactions WHERE instance_id = instances.id AND meter = 'gpu'
    ) AS gpu_micro
    FROM instances WHERE stop_at IS NOT NULL OR max_charge_micro IS NOT NULL`);

/** What must hold of limits and caps, whatever happens. */
export const LIMITS: Invariants = {
  'no GPU time is charged beyond the limit of an instance': ({ world }) =>
    first(limited(world), ({ id, max_charge_micro, gpu_micro }) =>
      max_charge_micro === null || gpu_micro <= max_charge_micro
        ? undefined
        : `${id} is charged ${gpu_micro} of ${max_charge_micro}`,
    ),

  'no GPU time is charged after the time to stop': ({ world }) => {
    // A clock that was set tells its times anew.
    if (world.jumpedAt > -Infinity) return undefined;
    const charged = world.rows<{ instance_id: string; beyond: number }>(`
      SELECT instance_id, settled_to - opened_at - written_off_ms - max(stop_at - opened_at, 0) AS beyond
      FROM meter_intervals JOIN instances ON instances.id = instance_id WHERE meter = 'gpu' AND stop_at IS NOT NULL`);
    return first(charged, ({ instance_id, beyond }) => (beyond > 0 ? `${instance_id}: ${beyond} ms` : undefined));
  },

  'no GPU time is charged beyond a cap': ({ world }) => {
    const days = world.rows<{ organization_id: string; gpu_micro: number; cap: number }>(`
      SELECT organization_id, gpu_micro, day_micro AS cap FROM organization_days JOIN spend_caps USING (organization_id)
      WHERE day_micro IS NOT NULL
      UNION ALL SELECT organization_id, sum(gpu_micro), month_micro FROM organization_days JOIN spend_caps USING (organization_id)
      WHERE month_micro IS NOT NULL GROUP BY organization_id, strftime('%Y-%m', day * 86400, 'unixepoch')`);
    return first(days, ({ organization_id, gpu_micro, cap }) =>
      gpu_micro <= cap ? undefined : `${organization_id} is charged ${gpu_micro} of ${cap}`,
    );
  },

  'what has reached its limit is stopped at once': ({ world }) => {
    const { controlPlane, timeline, witness, upSince, jumpedAt } = world;
    if (!controlPlane.alive || jumpedAt > -Infinity || timeline.now - upSince <= SLACK_MS) return undefined;
    return first(limited(world), ({ id, status, stop_at, max_charge_micro, spend_micro }) => {
      if (status !== 'running' || timeline.now - (witness.runningSince.get(id) ?? Infinity) <= SLACK_MS)
        return undefined;
      const isLate = stop_at !== null && EPOCH_MS + timeline.now - stop_at > SLACK_MS;
      const isUsedUp = max_charge_micro !== null && spend_micro >= max_charge_micro;
      return isLate || isUsedUp ? `${id} runs` : undefined;
    });
  },
};
