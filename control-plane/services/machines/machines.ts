import type { Operator } from '../../domain/caller.js';
import type { Maintenance } from '../../domain/machine.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';

export type GpuDetails = Row<'gpus'> & {
  /** Who holds it: an instance, or a workload in quarantine. */
  instance_id: string | null;
  quarantine_id: string | null;
};
export type MachineDetails = Row<'machines'> & {
  connected: boolean;
  /** Why the host takes nothing new; null: it does, or nobody knows. */
  obstacle: string | null;
  disk_available_gb: number;
  gpus: GpuDetails[];
};

/** Operators: every machine that was not removed, newest first. */
export function listMachines(platform: Platform, request: PageRequest): Page<MachineDetails> {
  const all = query.selectFrom('machines').selectAll().where('removed_at', 'is', null);
  return platform.store.transact((tx) => {
    const { items, ...rest } = pageOf(tx, all, request, {
      by: { enrolled_at: 'desc', id: 'asc' },
      keyOf: ({ enrolled_at, id }) => [enrolled_at, id],
    });
    return { ...rest, items: items.map((machine) => describeMachine(platform, tx, machine)) };
  });
}

/** Operators. Refuses with MACHINE_NOT_FOUND. */
export function getMachine(platform: Platform, id: string): MachineDetails {
  return platform.store.transact((tx) => describeMachine(platform, tx, findMachine(tx, id)));
}

export function findMachine(tx: Tx, id: string): Row<'machines'> {
  const machine = tx.get(query.selectFrom('machines').selectAll().where('id', '=', id));
  if (!machine) throw new Refusal('MACHINE_NOT_FOUND', 'no machine has this id');
  if (machine.removed_at === null) return machine;
  throw new Refusal(
    'MACHINE_NOT_FOUND',
    'this machine was removed; its host may come back as a new one: an ordinary enrolment token, and "gpurent-agent enroll --new"',
  );
}

/** Operators: a cordoned machine takes nothing new; what runs on it goes on. Refuses with MACHINE_NOT_FOUND. */
export function cordon(platform: Platform, operator: Operator, id: string): MachineDetails {
  return change(platform, operator, id, 'machine.cordon', (now) => ({ cordoned_at: now }));
}

/** Operators: back onto the market. Refuses with MACHINE_NOT_FOUND. */
export function uncordon(platform: Platform, operator: Operator, id: string): MachineDetails {
  return change(platform, operator, id, 'machine.uncordon', () => ({ cordoned_at: null }));
}

/**
 * Operators: whether renters are put on a machine though nothing holds their disks to their size, so that one may fill the disk
 * of all. Refuses with MACHINE_NOT_FOUND.
 */
export function waiveDiskQuota(platform: Platform, operator: Operator, id: string, isWaived: boolean): MachineDetails {
  const action = isWaived ? 'machine.waive_disk_quota' : 'machine.require_disk_quota';
  return change(platform, operator, id, action, (now) => ({ quota_waived_at: isWaived ? now : null }));
}

/**
 * Operators: a window in which nothing starts, nor within the hour before it; null: none. Refuses with MACHINE_NOT_FOUND, and
 * with VALIDATION_FAILED for a window that is over or ends before it begins.
 */
export function setMaintenance(
  platform: Platform,
  operator: Operator,
  id: string,
  window: Maintenance | null,
): MachineDetails {
  return change(platform, operator, id, window ? 'machine.maintenance' : 'machine.maintenance_off', (now) => {
    if (window && window.endsAt <= window.startsAt) throw invalidField('ends_at', 'must be after starts_at');
    if (window && window.endsAt <= now) throw invalidField('ends_at', 'must be in the future');
    return { maintenance_starts_at: window?.startsAt ?? null, maintenance_ends_at: window?.endsAt ?? null };
  });
}

function change(
  platform: Platform,
  operator: Operator,
  id: string,
  action: string,
  columns: (now: number) => Partial<Row<'machines'>>,
): MachineDetails {
  return platform.store.transact((tx) => {
    const machine = findMachine(tx, id);
    const changes = columns(tx.now);
    tx.run(query.updateTable('machines').set(changes).where('id', '=', id));
    recordAudit(tx, operator, action, id, changes);
    return describeMachine(platform, tx, { ...machine, ...changes });
  });
}

/** A machine that the store refers to, removed or not. */
export function findMachineRow(tx: Tx, id: string): Row<'machines'> {
  const machine = tx.get(query.selectFrom('machines').selectAll().where('id', '=', id));
  if (!machine) throw new Error(`machine ${id} has vanished`);
  return machine;
}

export function describeMachine(platform: Platform, tx: Tx, machine: Row<'machines'>): MachineDetails {
  return {
    ...machine,
    connected: platform.connections.isConnected(machine.id),
    obstacle: platform.connections.obstacleOf(machine.id),
    disk_available_gb: availableDiskGb(platform, tx, machine),
    gpus: findGpus(tx, machine.id),
  };
}

/** The GPUs that a machine has now, by position, each with the instance that holds it. */
export function findGpus(tx: Tx, machineId: string): GpuDetails[] {
  return tx.all(
    query
      .selectFrom('gpus')
      .leftJoin('gpu_claims', (join) =>
        join.onRef('gpu_claims.machine_id', '=', 'gpus.machine_id').onRef('gpu_claims.gpu_uuid', '=', 'gpus.uuid'),
      )
      .selectAll('gpus')
      .select((eb) => [
        'gpu_claims.instance_id',
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
      .where('gpus.present', '=', 1)
      .orderBy('gpus.position')
      .orderBy('gpus.uuid'),
  );
}

/**
 * What neither an instance nor a workload in quarantine has committed, and is really there: a disk is its own until it is
 * destroyed.
 */
export function availableDiskGb(
  { connections }: Platform,
  tx: Tx,
  machine: Pick<Row<'machines'>, 'id' | 'disk_gb'>,
): number {
  const committed = tx.get(
    query
      .selectFrom('instances')
      .select((eb) => eb.fn.coalesce(eb.fn.sum<number>('disk_gb'), eb.lit(0)).as('gb'))
      .where('machine_id', '=', machine.id)
      .where('status', '<>', sql.lit('destroyed')),
  );
  const quarantined = tx.get(
    query
      .selectFrom('quarantine')
      .select((eb) => eb.fn.coalesce(eb.fn.sum<number>('disk_gb'), eb.lit(0)).as('gb'))
      .where('machine_id', '=', machine.id),
  );
  const uncommitted = machine.disk_gb - (committed?.gb ?? 0) - (quarantined?.gb ?? 0);
  return Math.max(Math.min(uncommitted, connections.diskFreeGb(machine.id)), 0);
}
