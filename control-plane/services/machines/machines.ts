import type { SelectQueryBuilder } from 'kysely';
import semver from 'semver';
import { VERSION } from '../../../shared/version.js';
import type { Operator } from '../../domain/caller.js';
import type { OperatorAct } from '../../domain/operator-act.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row, Schema } from '../../store/schema.js';
import { compileOnce, listOf, query, rowById, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { endOf, pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';

export type GpuDetails = Row<'gpus'> & {
  /** The instance that holds the GPU. */
  instance_id: string | null;
  /** The workload in quarantine that holds the GPU. */
  quarantine_id: string | null;
  /** The machine that the GPU belongs to, if that is another one. */
  owner_id: string | null;
  owner_name: string | null;
};
export type MachineDetails = Row<'machines'> & {
  connected: boolean;
  /** The version of the control plane, if the agent is older; otherwise null. */
  upgrade_to: string | null;
  /** Why the host takes nothing new; null if it takes commands or is not connected. */
  obstacle: string | null;
  /** By how much the clocks of the host and of its Docker are ahead of this one, in ms; null: not measured. */
  clock_ahead_ms: number | null;
  docker_clock_ahead_ms: number | null;
  disk_available_gb: number;
  gpus: GpuDetails[];
};

/**
 * What an operator looks for: the beginning of a name; machines whose agent is older than the control plane, or only the others; the
 * machines with some ids.
 */
export interface MachineFilter {
  name?: string | undefined;
  outdated?: boolean | undefined;
  ids?: readonly string[] | undefined;
}

/** Lists, for an operator, machines that were not removed, newest first; those that were looked for by a name in the order of that. */
export function listMachines(
  platform: Platform,
  { name, outdated, ids, ...request }: PageRequest & MachineFilter,
): Page<MachineDetails> {
  let all = query.selectFrom('machines').selectAll().where('removed_at', 'is', null);
  if (ids !== undefined) all = all.where('id', 'in', listOf(ids));
  return platform.store.transact((tx) => {
    if (outdated !== undefined) {
      const older = listOf(olderVersions(tx));
      all = all.where((eb) => {
        const isOlder = eb(eb.fn.coalesce('agent_version', sql.lit('')), 'in', older);
        return outdated ? isOlder : eb.not(isOlder);
      });
    }
    const { items, ...rest } =
      name === undefined
        ? pageOf(tx, all, request, NEWEST_FIRST)
        : pageOf(tx, whereNameBegins(all, name), request, BY_NAME);
    return { ...rest, items: items.map((machine) => describeMachine(platform, tx, machine)) };
  });
}

const NEWEST_FIRST = {
  by: { enrolled_at: 'desc', id: 'asc' },
  keyOf: ({ enrolled_at, id }: Row<'machines'>) => [enrolled_at, id],
} as const;

export const BY_NAME = {
  by: { folded_name: 'asc', id: 'asc' },
  keyOf: ({ folded_name, id }: { folded_name: string; id: string }) => [folded_name, id],
} as const;

/** Keeps the machines whose name begins with a text. As in the index, upper and lower case of A to Z are the same. */
export function whereNameBegins<Item>(machines: SelectQueryBuilder<Schema, 'machines', Item>, prefix: string) {
  const folded = sql<string>`machines.name COLLATE NOCASE`;
  return machines.select(folded.as('folded_name')).where(folded, '>=', prefix).where(folded, '<', endOf(prefix));
}

/** Returns the versions of agents of present machines that are older than the control plane. */
function olderVersions(tx: Tx): string[] {
  const versions = query.selectFrom('machines').select('agent_version').distinct().where('removed_at', 'is', null);
  return tx.all(versions).flatMap(({ agent_version: version }) => (upgradeOf(version) === null ? [] : (version ?? [])));
}

/** Returns the version to which an agent should be upgraded: that of the control plane, if the agent is known to be older; otherwise null. */
function upgradeOf(agentVersion: string | null): string | null {
  const version = semver.valid(agentVersion);
  return version !== null && semver.lt(version, VERSION) ? VERSION : null;
}

/** Returns a machine for an operator. Refuses with MACHINE_NOT_FOUND. */
export function getMachine(platform: Platform, id: string): MachineDetails {
  return platform.store.transact((tx) => describeMachine(platform, tx, findMachine(tx, id)));
}

/** Returns a machine that is not removed. Refuses with MACHINE_NOT_FOUND. */
export function findMachine(tx: Tx, id: string): Row<'machines'> {
  const machine = tx.get(machineBy({ id }));
  if (!machine) throw new Refusal('MACHINE_NOT_FOUND', 'no machine has this id');
  if (machine.removed_at === null) return machine;
  throw new Refusal(
    'MACHINE_NOT_FOUND',
    'this machine was removed; its host can enroll as a new machine, with an enrollment token without machine_id and "gpurent-agent enroll --new"',
  );
}

const machineBy = compileOnce(({ id }: { id: string }) =>
  query.selectFrom('machines').selectAll().where('id', '=', id),
);

/** Cordons a machine for an operator: it takes no new instances, and the present ones go on. Refuses with MACHINE_NOT_FOUND. */
export function cordon(platform: Platform, operator: Operator, id: string): MachineDetails {
  return changeMachine(platform, operator, id, 'machine.cordon', ({ now }) => ({ cordoned_at: now }));
}

/** Ends the cordon of a machine for an operator. Refuses with MACHINE_NOT_FOUND. */
export function uncordon(platform: Platform, operator: Operator, id: string): MachineDetails {
  return changeMachine(platform, operator, id, 'machine.uncordon', () => ({ cordoned_at: null }));
}

/**
 * Allows or forbids, for an operator, instances on a machine without disk quotas, where one renter can fill the disk of all.
 * Refuses with MACHINE_NOT_FOUND.
 */
export function waiveDiskQuota(platform: Platform, operator: Operator, id: string, isWaived: boolean): MachineDetails {
  const action = isWaived ? 'machine.waive_disk_quota' : 'machine.require_disk_quota';
  return changeMachine(platform, operator, id, action, ({ now }) => ({ quota_waived_at: isWaived ? now : null }));
}

/** Changes columns of a machine for an operator, and records the action. Refuses with MACHINE_NOT_FOUND. */
export function changeMachine(
  platform: Platform,
  operator: Operator,
  id: string,
  action: OperatorAct,
  change: (tx: Tx, machine: Row<'machines'>) => Partial<Row<'machines'>>,
): MachineDetails {
  return platform.store.transact((tx) => {
    const machine = findMachine(tx, id);
    const changes = change(tx, machine);
    tx.run(query.updateTable('machines').set(changes).where('id', '=', id));
    recordAudit(tx, operator, action, id, changes);
    return describeMachine(platform, tx, { ...machine, ...changes });
  });
}

/** Returns the number of machines that are neither removed nor lost. */
export function countMachines({ store }: Platform): number {
  const present = query.selectFrom('machines').where('removed_at', 'is', null).where('lost_at', 'is', null);
  return store.transact((tx) => tx.get(present.select(({ fn }) => fn.countAll<number>().as('count')))?.count ?? 0);
}

/** Returns what events for operators say of a machine. */
export function nameOfMachine(tx: Tx, id: string): { machine_id: string; machine_name: string } {
  return { machine_id: id, machine_name: findMachineRow(tx, id).name };
}

/** Returns the row of a machine, removed or not. Throws an Error if there is none: callers have the id from the database. */
export function findMachineRow(tx: Tx, id: string): Row<'machines'> {
  const machine = tx.get(rowById('machines', id));
  if (!machine) throw new Error(`machine ${id} is missing in the database`);
  return machine;
}

export function describeMachine(platform: Platform, tx: Tx, machine: Row<'machines'>): MachineDetails {
  const clock = platform.connections.clockOf(machine.id);
  return {
    ...machine,
    connected: platform.connections.isConnected(machine.id),
    obstacle: platform.connections.obstacleOf(machine.id),
    clock_ahead_ms: clock?.host ?? null,
    docker_clock_ahead_ms: clock?.docker ?? null,
    upgrade_to: upgradeOf(machine.agent_version),
    disk_available_gb: availableDiskGb(platform, tx, machine),
    gpus: findGpus(tx, machine.id),
  };
}

/** Returns the present GPUs of a machine by position, each with the instance or the quarantined workload that holds it. */
export function findGpus(tx: Tx, machineId: string): GpuDetails[] {
  return tx.all(gpusOfMachine({ machineId }));
}

const gpusOfMachine = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('gpus')
    .leftJoin('gpu_claims', (join) =>
      join.onRef('gpu_claims.machine_id', '=', 'gpus.machine_id').onRef('gpu_claims.gpu_uuid', '=', 'gpus.uuid'),
    )
    .leftJoin('gpus as owned', (join) =>
      join.onRef('owned.uuid', '=', 'gpus.uuid').on('owned.owned', '=', sql.lit(1)).on('gpus.owned', '=', sql.lit(0)),
    )
    .leftJoin('machines as owner', 'owner.id', 'owned.machine_id')
    .selectAll('gpus')
    .select((eb) => [
      'gpu_claims.instance_id',
      'owner.id as owner_id',
      'owner.name as owner_name',
      eb
        .selectFrom('quarantine_gpus')
        .innerJoin('quarantine', 'quarantine.id', 'quarantine_gpus.quarantine_id')
        .select('quarantine.id')
        .whereRef('quarantine.machine_id', '=', 'gpus.machine_id')
        .whereRef('quarantine_gpus.gpu_uuid', '=', 'gpus.uuid')
        .limit(1)
        .as('quarantine_id'),
    ])
    .where('gpus.machine_id', '=', machineId)
    .where('gpus.present', '=', sql.lit(1))
    .orderBy('gpus.position')
    .orderBy('gpus.uuid'),
);

/**
 * Returns the disk space in GB for new instances. An instance that is not destroyed and a workload in quarantine keep their whole
 * disk, and the result is never more than the free space that the host reports.
 */
export function availableDiskGb(
  { connections }: Platform,
  tx: Tx,
  machine: Pick<Row<'machines'>, 'id' | 'disk_gb'>,
): number {
  const committed = tx.get(committedGb({ machineId: machine.id }));
  const quarantined = tx.get(quarantinedGb({ machineId: machine.id }));
  const uncommitted = machine.disk_gb - (committed?.gb ?? 0) - (quarantined?.gb ?? 0);
  return Math.max(Math.min(uncommitted, connections.diskFreeGb(machine.id)), 0);
}

const committedGb = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number>('disk_gb'), eb.lit(0)).as('gb'))
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed')),
);

const quarantinedGb = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('quarantine')
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number>('disk_gb'), eb.lit(0)).as('gb'))
    .where('machine_id', '=', machineId),
);
