import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findGpus } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';
import { presenceOf } from './counts.js';
import type { FleetMachine } from './fleet.js';
import { MOST_ITEMS, needOf, type Need, type NeedItem } from './need.js';

/** Returns what the machines need. The counts are those of the metrics `gpurent_hosts` and `gpurent_gpus`, in machines. */
export function machineNeeds(
  platform: Platform,
  tx: Tx,
  fleet: readonly FleetMachine[],
  failing: readonly string[],
): Need[] {
  const { connections } = platform;
  const [connected, away, lost] = (['connected', 'away', 'lost'] as const).map((presence) =>
    fleet.filter(({ machine }) => presenceOf(platform, machine) === presence),
  ) as [FleetMachine[], FleetMachine[], FleetMachine[]];
  const refusing = connected.filter(({ machine: { id } }) => connections.troubleOf(id) !== null);
  const failed = new Set(failing);
  return [
    ...needOf(
      'machine_away',
      away.length,
      firstOf(away).map((one) => awayItem(tx, one)),
    ),
    ...needOf(
      'machine_lost',
      lost.length,
      firstOf(lost).map((one) => ({ ...itemOf(one), since: one.machine.lost_at })),
    ),
    ...needOf(
      'machine_refusing',
      refusing.length,
      firstOf(refusing).map((one) => ({
        ...itemOf(one),
        message: connections.obstacleOf(one.machine.id) ?? 'Docker on the host does not answer',
      })),
    ),
    ...listed(
      'commands_failing',
      fleet.filter(({ machine: { id } }) => failed.has(id)),
    ),
    ...unhealthyNeed(tx, fleet.filter(hasUnhealthy)),
    ...listed('disks_unlimited', connected.filter(limitsNoDisks)),
  ];
}

function listed(kind: 'commands_failing' | 'disks_unlimited', machines: readonly FleetMachine[]): Need[] {
  return needOf(kind, machines.length, firstOf(machines).map(itemOf));
}

const firstOf = <Item>(items: readonly Item[]) => items.slice(0, MOST_ITEMS);

function itemOf({ machine: { id, name } }: FleetMachine): Partial<NeedItem> {
  return { subject: `machines/${id}`, name, machine_id: id };
}

function awayItem(tx: Tx, one: FleetMachine): Partial<NeedItem> {
  const machine = tx.get(query.selectFrom('machines').select('last_seen_at').where('id', '=', one.machine.id));
  const since = machine?.last_seen_at ?? null;
  return { ...itemOf(one), since, message: since === null ? 'It has enrolled and never connected.' : null };
}

function hasUnhealthy({ models }: FleetMachine): boolean {
  return [...models.values()].some(({ unhealthy }) => unhealthy > 0);
}

function unhealthyNeed(tx: Tx, machines: readonly FleetMachine[]): Need[] {
  const items = firstOf(machines).map((one) => {
    const sick = findGpus(tx, one.machine.id).filter(({ healthy }) => healthy === 0);
    const [first] = sick;
    const since = first?.told_healthy === 0 ? first.told_at : null;
    return { ...itemOf(one), since, message: `${sick.length} of its GPUs: ${first?.reason ?? 'no reason given'}` };
  });
  return needOf('gpus_unhealthy', machines.length, items);
}

function limitsNoDisks({ machine: { disk_quota, quota_waived_at } }: FleetMachine): boolean {
  return disk_quota !== 'enforced' && quota_waived_at === null;
}
