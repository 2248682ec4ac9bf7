import { TICK_MS } from './control-plane.js';
import { EPOCH_MS } from './timeline.js';
import { first, isBeingStopped, type Invariants, type View } from './view.js';

const SLACK_MS = 2 * TICK_MS;

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

/** Stops because something is used up that were asked for in the place of one that was not carried out, with nothing charged since. */
const ASKED_AGAIN = `
  SELECT events.instance_id, events.kind FROM events
  JOIN commands AS asked ON asked.instance_id = events.instance_id AND asked.created_at = events.at AND asked.kind IN ('stop', 'release')
  JOIN commands AS earlier ON earlier.instance_id = asked.instance_id AND earlier.machine_id = asked.machine_id
    AND earlier.sequence = asked.sequence - 1 AND earlier.kind IN ('stop', 'release') AND earlier.state = 'closed'
  WHERE events.kind IN ('stop_time_reached', 'charge_limit_reached', 'spend_cap_reached', 'out_of_balance')
    AND events.type = 'instance.status_changed'
    AND NOT EXISTS (
      SELECT 1 FROM meter_intervals
      WHERE meter_intervals.instance_id = asked.instance_id AND after_stop = 1 AND settled_to - opened_at > written_off_ms)`;

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
      SELECT organization_days.organization_id, gpu_micro, amount_micro AS cap FROM organization_days JOIN spend_caps ON owner_id = organization_days.organization_id
      WHERE kind = 'day'
      UNION ALL SELECT organization_days.organization_id, sum(gpu_micro), amount_micro FROM organization_days JOIN spend_caps ON owner_id = organization_days.organization_id
      WHERE kind = 'month' GROUP BY organization_days.organization_id, strftime('%Y-%m', day * 86400, 'unixepoch')`);
    return first(days, ({ organization_id, gpu_micro, cap }) =>
      gpu_micro <= cap ? undefined : `${organization_id} is charged ${gpu_micro} of ${cap}`,
    );
  },

  'what is used up asks for no stop that is still being sent': ({ world }) =>
    first(
      world.rows<{ instance_id: string; kind: string }>(ASKED_AGAIN),
      ({ instance_id, kind }) => `${instance_id}: ${kind}`,
    ),

  'what has reached its limit is stopped at once': (view) => {
    const { world } = view;
    const { controlPlane, timeline, witness, upSince, jumpedAt } = world;
    if (!controlPlane.alive || jumpedAt > -Infinity || timeline.now - upSince <= SLACK_MS) return undefined;
    return first(limited(world), ({ id, status, stop_at, max_charge_micro, spend_micro }) => {
      if (status !== 'running' || timeline.now - (witness.runningSince.get(id) ?? Infinity) <= SLACK_MS)
        return undefined;
      if (isBeingStopped(view, id)) return undefined;
      const isLate = stop_at !== null && EPOCH_MS + timeline.now - stop_at > SLACK_MS;
      const isUsedUp = max_charge_micro !== null && spend_micro >= max_charge_micro;
      return isLate || isUsedUp ? `${id} runs` : undefined;
    });
  },
};
