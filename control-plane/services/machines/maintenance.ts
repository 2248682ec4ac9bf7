import type { Operator } from '../../domain/caller.js';
import type { Maintenance } from '../../domain/machines/machine.js';
import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import type { Platform } from '../system/platform.js';
import { changeMachine, type MachineDetails } from './machines.js';

/**
 * Sets the maintenance window of a machine for an operator; null removes it. Nothing starts in the window and in the hour before it.
 * Each organization with an instance on the machine is told. Refuses with MACHINE_NOT_FOUND, and with VALIDATION_FAILED for a window
 * that is over or ends before it begins.
 */
export function setMaintenance(
  platform: Platform,
  operator: Operator,
  id: string,
  window: Maintenance | null,
): MachineDetails {
  return changeMachine(
    platform,
    operator,
    id,
    window ? 'machine.maintenance' : 'machine.maintenance_off',
    (tx, before) => {
      if (window && window.endsAt <= window.startsAt) throw invalidField('ends_at', 'must be after starts_at');
      if (window && window.endsAt <= tx.now) throw invalidField('ends_at', 'must be in the future');
      tellRenters(tx, before, window);
      return { maintenance_starts_at: window?.startsAt ?? null, maintenance_ends_at: window?.endsAt ?? null };
    },
  );
}

function tellRenters(tx: Tx, before: Row<'machines'>, window: Maintenance | null): void {
  const { id, name, maintenance_starts_at: startsAt, maintenance_ends_at: endsAt } = before;
  if ((window?.startsAt ?? null) === startsAt && (window?.endsAt ?? null) === endsAt) return;
  const isOver = endsAt !== null && endsAt <= tx.now;
  if (window === null && isOver) return;
  for (const [organization, instance_ids] of rentersOf(tx, id)) {
    const data = { machine_id: id, machine_name: name, instance_ids };
    const subject = `machines/${id}`;
    if (window === null) recordEvent(tx, organization, 'machine.maintenance_cancelled', subject, data);
    else recordEvent(tx, organization, 'machine.maintenance_planned', subject, { ...data, ...timesOf(window) });
  }
}

function timesOf({ startsAt, endsAt }: Maintenance): { starts_at: string; ends_at: string } {
  return { starts_at: new Date(startsAt).toISOString(), ends_at: new Date(endsAt).toISOString() };
}

/** Returns the organizations with instances on a machine, and these instances. */
export function rentersOf(tx: Tx, machineId: string): ReadonlyMap<string, string[]> {
  const renters = new Map<string, string[]>();
  for (const { id, organization_id } of tx.all(liveOn({ machineId })))
    renters.set(organization_id, [...(renters.get(organization_id) ?? []), id]);
  return renters;
}

const liveOn = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'organization_id'])
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed')),
);
