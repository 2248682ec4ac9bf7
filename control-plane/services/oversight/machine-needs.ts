import { isOff } from '../../domain/machines/clock-difference.js';
import { MACHINE_NEEDS, type MachineNeed } from '../../domain/machines/need.js';
import { listOf, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findGpus } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';
import { presenceOf } from './counts.js';
import type { FleetMachine } from './fleet.js';
import { MOST_ITEMS, needOf, oldestFirst, type Need, type NeedItem } from './need.js';

/** Returns which machines need an act, and why. A machine can need several. */
export function machinesInNeed(
  platform: Platform,
  fleet: readonly FleetMachine[],
  failing: readonly string[],
): Record<MachineNeed, FleetMachine[]> {
  const [connected, away, lost] = (['connected', 'away', 'lost'] as const).map((presence) =>
    fleet.filter(({ machine }) => presenceOf(platform, machine) === presence),
  ) as [FleetMachine[], FleetMachine[], FleetMachine[]];
  const failed = new Set(failing);
  return {
    machine_away: away,
    machine_lost: lost,
    machine_refusing: connected.filter(({ machine: { id } }) => platform.connections.troubleOf(id) !== null),
    commands_failing: fleet.filter(({ machine: { id } }) => failed.has(id)),
    gpus_unhealthy: fleet.filter(({ unhealthy }) => unhealthy > 0),
    gpus_disputed: fleet.filter(({ disputed }) => disputed > 0),
    disks_unlimited: connected.filter(limitsNoDisks),
    clock_off: connected.filter((one) => hasClockOff(platform, one)),
  };
}

/**
 * Returns what the machines need. The counts are those of the metrics `gpurent_hosts`, `gpurent_gpus_unhealthy` and
 * `gpurent_gpus_disputed`, in machines.
 */
export function machineNeeds(
  platform: Platform,
  tx: Tx,
  fleet: readonly FleetMachine[],
  failing: readonly string[],
): Need[] {
  const machines = machinesInNeed(platform, fleet, failing);
  const items: Record<MachineNeed, (machines: readonly FleetMachine[]) => readonly Partial<NeedItem>[]> = {
    machine_away: (away) => awayItems(tx, away),
    machine_lost: (lost) => oldestFirst(lost.map(lostItem)),
    machine_refusing: (refusing) => firstOf(refusing).map((one) => refusingItem(platform, one)),
    commands_failing: (failing) => firstOf(failing).map(itemOf),
    gpus_unhealthy: (unhealthy) => firstOf(unhealthy).map((one) => unhealthyItem(tx, one)),
    gpus_disputed: (disputed) => firstOf(disputed).map((one) => disputedItem(tx, one)),
    disks_unlimited: (unlimited) => firstOf(unlimited).map(itemOf),
    clock_off: (off) => firstOf(off).map((one) => clockItem(platform, one)),
  };
  return MACHINE_NEEDS.flatMap((kind) => needOf(kind, machines[kind].length, items[kind](machines[kind])));
}

const firstOf = <Item>(items: readonly Item[]) => items.slice(0, MOST_ITEMS);

function itemOf({ machine: { id, name } }: FleetMachine): Partial<NeedItem> {
  return { subject: `machines/${id}`, name, machine_id: id };
}

/** Returns the machines that have been away for longest; those that have never connected come last. */
function awayItems(tx: Tx, away: readonly FleetMachine[]): Partial<NeedItem>[] {
  const seen = query.selectFrom('machines').select(['id', 'last_seen_at']);
  const rows = tx.all(seen.where('id', 'in', listOf(away.map(({ machine }) => machine.id))));
  const oldest = firstOf(oldestFirst(rows.map(({ id, last_seen_at }) => ({ id, since: last_seen_at }))));
  const message = 'It has enrolled and never connected.';
  return oldest.flatMap(({ id, since }) => {
    const one = away.find(({ machine }) => machine.id === id);
    return one ? { ...itemOf(one), since, message: since === null ? message : null } : [];
  });
}

function lostItem(one: FleetMachine) {
  return { ...itemOf(one), since: one.machine.lost_at };
}

/** A GPU that is rented counts, too: its renter pays for it, and only an operator can help. */
function unhealthyItem(tx: Tx, one: FleetMachine): Partial<NeedItem> {
  const unhealthy = findGpus(tx, one.machine.id).filter(({ healthy }) => healthy === 0);
  const [first] = oldestFirst(unhealthy.map((gpu) => ({ ...gpu, since: gpu.told_healthy === 0 ? gpu.told_at : null })));
  const rented = unhealthy.filter(({ instance_id }) => instance_id !== null).length;
  const lost = unhealthy.filter(({ missing }) => missing === 1).length;
  const counts = `${rented === 0 ? '' : `, ${rented} of them rented`}${lost === 0 ? '' : `, ${lost} of them missing`}`;
  const which = `${unhealthy.length} of its GPUs${counts}`;
  const message = `${which}: ${first?.reason ?? 'no reason given'}`;
  return { ...itemOf(one), since: first?.since ?? null, message };
}

function disputedItem(tx: Tx, one: FleetMachine): Partial<NeedItem> {
  const disputed = findGpus(tx, one.machine.id).filter(({ owned }) => owned === 0);
  const [first] = disputed;
  const others = disputed.length === 1 ? '' : `, and ${disputed.length - 1} more belong to other machines`;
  const message = first && `${first.uuid} belongs to machine ${first.owner_name} (${first.owner_id})${others}`;
  return { ...itemOf(one), message: message ?? null };
}

function refusingItem({ connections }: Platform, one: FleetMachine): Partial<NeedItem> {
  const message = connections.obstacleOf(one.machine.id) ?? 'Docker on the host does not answer';
  return { ...itemOf(one), message };
}

/** Tells whether a clock of the host is more than two seconds wrong. */
function hasClockOff({ connections }: Platform, { machine: { id } }: FleetMachine): boolean {
  return isOff(connections.clockOf(id));
}

function clockItem({ connections }: Platform, one: FleetMachine): Partial<NeedItem> {
  const { host, docker } = connections.clockOf(one.machine.id) ?? { host: 0, docker: null };
  const isDockers = docker !== null && Math.abs(docker) > Math.abs(host);
  const ahead = isDockers ? docker : host;
  const seconds = `${(Math.abs(ahead) / 1000).toFixed(1)} seconds ${ahead > 0 ? 'ahead' : 'behind'}`;
  return { ...itemOf(one), message: `The clock of its ${isDockers ? 'Docker' : 'host'} is ${seconds}` };
}

function limitsNoDisks({ machine: { disk_quota, quota_waived_at } }: FleetMachine): boolean {
  return disk_quota !== 'enforced' && quota_waived_at === null;
}
