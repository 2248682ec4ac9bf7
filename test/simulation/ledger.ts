import { DAY_MS } from '../../shared/time.js';
import type { InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import { GRACE_MS } from '../../control-plane/domain/deadlines.js';
import { TICK_MS } from './control-plane.js';
import { EPOCH_MS } from './timeline.js';
import { first, isBeingStopped, type IntervalRow, type Invariants, type TransactionRow, type View } from './view.js';

const DEBT_MICRO = -5_000_000;
/** What a worker or a host may take to notice. */
const SLACK_MS = 2 * TICK_MS;
/** A host's own clock and the true one differ by what a rounding makes. */
const ROUNDING_MS = 1_000;

const METERED: Readonly<Partial<Record<InstanceStatus, string>>> = { running: 'gpu', stopped: 'disk' };

/** What must hold of money, whatever happens. */
export const LEDGER: Invariants = {
  'an instance has spent the sum of its charges': ({ instances, transactions }) => {
    const sums = sumBy(
      [...transactions.values()].filter(({ kind }) => kind === 'charge'),
      ({ instance_id }) => instance_id ?? '',
    );
    return first(instances.values(), ({ id, spend_micro }) =>
      spend_micro === -(sums.get(id) ?? 0)
        ? undefined
        : `${id} has spent ${spend_micro}, its charges are ${sums.get(id)}`,
    );
  },

  'a balance is what was credited less what was charged': ({ organizations, transactions }) => {
    const sums = sumBy([...transactions.values()], ({ organization_id }) => organization_id);
    return first(organizations.values(), ({ id, balance_micro }) =>
      balance_micro === (sums.get(id) ?? 0) ? undefined : `${id} has ${balance_micro}, its rows are ${sums.get(id)}`,
    );
  },

  'what its days have cost is what was charged': ({ organizations, transactions, days }) => {
    const charges = [...transactions.values()].filter(({ kind }) => kind === 'charge');
    const sums = sumBy(charges, ({ organization_id }) => organization_id);
    return first(organizations.values(), ({ id }) => {
      const [charged, micro] = [-(sums.get(id) ?? 0), days.get(id)?.micro ?? 0];
      return micro === charged ? undefined : `the days of ${id} have cost ${micro}, its charges are ${charged}`;
    });
  },

  'what its days have cost is the same in every group': ({ wrongDays: [wrong] }) =>
    wrong && `a sum by day differs: ${JSON.stringify(wrong)}`,

  'only the row of the present hour grows': ({ transactions, before }) => {
    const was = [...(before?.transactions.values() ?? [])];
    const newest = new Map<string, number>();
    for (const row of was) newest.set(meterOf(row), Math.max(newest.get(meterOf(row)) ?? 0, row.hour ?? 0));
    return first(was, (row) => {
      const is = transactions.get(row.id);
      if (is === undefined) return `${row.id} is gone`;
      const mayGrow =
        row.kind === 'charge' && row.hour === newest.get(meterOf(row)) && is.amount_micro < row.amount_micro;
      const isSame = is.amount_micro === row.amount_micro && is.created_at === row.created_at;
      return isSame || mayGrow ? undefined : `${row.id} was ${row.amount_micro}, is ${is.amount_micro}`;
    });
  },

  'a meter runs in its status, and no two at once': ({ instances, intervals, world }) =>
    first(instances.values(), ({ id, status }) => {
      const its = intervals.filter(({ instance_id }) => instance_id === id);
      const open = its.filter(({ closed_at }) => closed_at === null);
      if (open.some(({ meter }) => meter !== METERED[status]))
        return `${id} is ${status}, its ${open[0]?.meter} is metered`;
      // A clock that was set tells its times anew.
      const wasSet = world.jumpedAt > -Infinity;
      return wasSet ? undefined : overlapOf(its);
    }),

  'no disk is metered while its host is silent for more than a quarter of an hour': ({
    instances,
    intervals,
    world,
  }) => {
    const { controlPlane, timeline, witness, upSince, hosts, jumpedAt } = world;
    if (jumpedAt > -Infinity) return undefined;
    const present = hosts.flatMap(({ machineId }) =>
      controlPlane.alive ? (witness.silenceOf(machineId, timeline.now, upSince) ?? []) : [],
    );
    return first([...witness.silences, ...present], ({ machineId, from, to }) =>
      first(intervals, ({ instance_id, meter, opened_at, closed_at }) => {
        if (meter !== 'disk' || instances.get(instance_id)?.machine_id !== machineId) return undefined;
        const begins = Math.max(opened_at - EPOCH_MS, from + SLACK_MS);
        const ends = Math.min((closed_at ?? Infinity) - EPOCH_MS, to);
        return begins < ends ? `the disk of ${instance_id} is metered from ${begins} to ${ends}` : undefined;
      }),
    );
  },

  'GPU time is charged for no longer than the workload ran': ({ instances, world: { witness, timeline, jumpedAt } }) =>
    first(instances.values(), ({ id, gpu_settled_ms }) => {
      const ran = witness.ranFor(id, timeline.now);
      if (jumpedAt > -Infinity || gpu_settled_ms <= ran + ROUNDING_MS) return undefined;
      return `${id} ran for ${ran} ms and is charged for ${gpu_settled_ms}`;
    }),

  'nothing is charged before it ran or after it was destroyed': ({ instances, intervals, world }) =>
    first(intervals, ({ instance_id, opened_at, closed_at }) => {
      const instance = instances.get(instance_id);
      if (!instance || world.jumpedAt > -Infinity) return undefined;
      const { started_at, destroyed_at } = instance;
      if (started_at === null || opened_at < started_at) return `${instance_id} is metered before it ran`;
      const isOver = destroyed_at === null || (closed_at ?? Infinity) <= destroyed_at;
      return isOver ? undefined : `${instance_id} is metered after it was destroyed`;
    }),

  'what runs out of balance is stopped at once': (view) => {
    const { instances, organizations, world } = view;
    const { controlPlane, timeline, witness, upSince } = world;
    if (!controlPlane.alive || timeline.now - upSince <= SLACK_MS) return undefined;
    return first(instances.values(), ({ id, status, organization_id }) => {
      if (status !== 'running' || (organizations.get(organization_id)?.balance_micro ?? 1) > 0) return undefined;
      if (isBeingStopped(view, id)) return undefined;
      const since = Math.max(
        witness.lowSince.get(organization_id) ?? Infinity,
        witness.runningSince.get(id) ?? Infinity,
      );
      return timeline.now - since > SLACK_MS ? `${id} runs, and nothing is left` : undefined;
    });
  },

  'nobody is destroyed before having had a day to pay': ({ edges, instances, world }) =>
    first(edges, ({ instance_id, became }) => {
      if (became !== 'destroying' || !isUnpaid(world, instance_id)) return undefined;
      const organizationId = instances.get(instance_id)?.organization_id ?? '';
      const low = world.timeline.now - (world.witness.paidAt.get(organizationId) ?? -Infinity);
      return low >= DAY_MS ? undefined : `${instance_id}, ${low} ms after there was a balance`;
    }),

  'who does not pay for a day is destroyed': ({ instances, organizations, world }) => {
    const { controlPlane, timeline, witness, upSince, jumpedAt, restoredAt, confirmedAt } = world;
    const held = world.rows("SELECT 1 FROM meta WHERE key = 'clock_step'").length > 0;
    const undisturbed = Math.max(upSince, jumpedAt, restoredAt, confirmedAt) + GRACE_MS;
    if (!controlPlane.alive || held) return undefined;
    return first(instances.values(), ({ id, status, organization_id }) => {
      const since = Math.max(witness.lowSince.get(organization_id) ?? Infinity, undisturbed);
      const isOverdue = timeline.now - since > DAY_MS + SLACK_MS;
      const isDown = status === 'stopped' || status === 'error';
      const isIndebted = (organizations.get(organization_id)?.balance_micro ?? 0) <= DEBT_MICRO;
      const hasBeenDown = timeline.now - (witness.downSince.get(id) ?? Infinity) > SLACK_MS;
      return isOverdue && isDown && hasBeenDown && isIndebted ? `${id} is still ${status}` : undefined;
    });
  },
};

function meterOf({ instance_id, meter }: TransactionRow): string {
  return `${instance_id} ${meter}`;
}

function isUnpaid(world: View['world'], instanceId: string): boolean {
  return world.rows("SELECT 1 FROM events WHERE instance_id = ? AND kind = 'unpaid'", instanceId).length > 0;
}

function overlapOf(its: readonly IntervalRow[]): string | undefined {
  const sorted = [...its].sort(
    (a, b) => a.opened_at - b.opened_at || (a.closed_at ?? Infinity) - (b.closed_at ?? Infinity),
  );
  return first(sorted.slice(1), (next) => {
    const previous = sorted[sorted.indexOf(next) - 1];
    const end = previous?.closed_at ?? Infinity;
    return end > next.opened_at ? `${next.instance_id} is metered twice from ${next.opened_at} on` : undefined;
  });
}

function sumBy<Row extends { amount_micro: number }>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(keyOf(row), (sums.get(keyOf(row)) ?? 0) + row.amount_micro);
  return sums;
}
