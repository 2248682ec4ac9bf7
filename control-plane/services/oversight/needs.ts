import { expiryWords, type CertificateTerm } from '../../../shared/network/certificate-term.js';
import { NEED_AFTER_MS } from '../../domain/machines/need.js';
import { WAIT_WORDS, waitReason } from '../../domain/instances/wait.js';
import { query, rowById, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { ignoredStops, nameStop } from '../billing/ledger/ignored-stops.js';
import { stuckCommands, stuckCutoff } from '../instances/stuck-commands.js';
import { findStep } from '../system/clock-steps.js';
import type { Platform } from '../system/platform.js';
import { COUNT, countQuarantined, countRefusedAdmins, oldestMail, settlementLag } from './counts.js';
import type { FleetMachine } from './fleet.js';
import { machineNeeds } from './machine-needs.js';
import { MOST_ITEMS, needOf, oldestFirst, type Need } from './need.js';

/** What only the process knows. */
export interface Signals {
  /** How long the scheduled backup is overdue, in milliseconds; Infinity: its folder cannot be used. */
  backupOverdueMs: number;
  certificates: readonly CertificateTerm[];
  /** The machines on which commands of several organizations have failed lately. */
  failingHosts: readonly string[];
}

/**
 * Returns what needs an act of an operator now, what concerns everybody first. Each kind that has an alert is here while the metric of
 * that is beyond its limit, `stop_ignored` also until the charges are credited; an alert fires only after that has lasted for some minutes.
 */
export function readNeeds(platform: Platform, tx: Tx, fleet: readonly FleetMachine[], signals: Signals): Need[] {
  return [
    ...clockNeed(tx),
    ...diskNeed(platform),
    ...lateNeed('backup_overdue', signals.backupOverdueMs, tx.now),
    ...certificateNeed(signals, tx.now),
    ...workerNeed(platform),
    ...lateNeed('settlement_late', settlementLag(tx), tx.now),
    ...lateNeed('mail_waiting', oldestMail(tx), tx.now),
    ...machineNeeds(platform, tx, fleet, signals.failingHosts),
    ...stuckNeed(platform, tx),
    ...quarantineNeed(tx),
    ...ignoredStopNeed(tx),
    ...disputeNeed(tx),
    ...suspensionNeed(tx),
    ...refusedNeed(tx),
  ];
}

function clockNeed(tx: Tx): Need[] {
  const step = findStep(tx);
  return step === undefined ? [] : needOf('clock_untrusted', 1, [{ since: step.at }]);
}

function diskNeed({ room }: Platform): Need[] {
  return room.isFull ? needOf('disk_full', 1, [{}]) : [];
}

function lateNeed(kind: 'backup_overdue' | 'settlement_late' | 'mail_waiting', lateMs: number, now: number): Need[] {
  if (lateMs <= NEED_AFTER_MS[kind]) return [];
  return needOf(kind, 1, [{ since: Number.isFinite(lateMs) ? now - lateMs : null }]);
}

function certificateNeed({ certificates }: Signals, now: number): Need[] {
  const items = certificates.flatMap(({ name, expiresAt }) => {
    const words = expiryWords(expiresAt, now);
    return words === undefined ? [] : [{ name, message: `It ${words}.` }];
  });
  return needOf('certificate_expiring', items.length, items);
}

function workerNeed({ workerRuns }: Platform): Need[] {
  const failing = workerRuns.list().filter((worker) => worker.failing);
  const items = failing.map(({ name, last_failure: message, failing_since: since }) => ({ name, message, since }));
  return needOf('worker_failing', failing.length, items);
}

function stuckNeed({ connections }: Platform, tx: Tx): Need[] {
  const stuck = stuckCommands(stuckCutoff(tx.now));
  const { count = 0 } = tx.get(stuck.select(COUNT)) ?? {};
  const first = stuck
    .leftJoin('organizations', 'organizations.id', 'instances.organization_id')
    .select(['commands.instance_id', 'commands.machine_id', 'commands.kind', 'accepted_at', 'machines.name'])
    .select(['commands.created_at', 'label', 'organization_id', 'organizations.name as organization_name'])
    .orderBy('commands.created_at')
    .limit(MOST_ITEMS);
  const items = tx.all(first).map(({ machine_id, kind, created_at, accepted_at, name, ...of }) => {
    const reason = waitReason(connections.troubleOf(machine_id), accepted_at !== null);
    const message = `${kind} of instance ${instanceWords(of)}: ${WAIT_WORDS[reason]}`;
    const { instance_id, organization_id } = of;
    return { subject: `instances/${instance_id}`, name, message, since: created_at, machine_id, organization_id };
  });
  return needOf('command_stuck', count, items);
}

function quarantineNeed(tx: Tx): Need[] {
  const first = query
    .selectFrom('quarantine')
    .innerJoin('machines', 'machines.id', 'quarantine.machine_id')
    .select(['quarantine.id', 'machine_id', 'name', 'found_at', 'removal_requested_at'])
    .orderBy('found_at')
    .limit(MOST_ITEMS);
  const items = tx.all(first).map(({ id, machine_id, name, found_at, removal_requested_at }) => {
    const message = removal_requested_at === null ? null : 'An operator has requested its removal.';
    return { subject: `quarantine/${id}`, name, message, since: found_at, machine_id };
  });
  return needOf('workload_quarantined', countQuarantined(tx), items);
}

function ignoredStopNeed(tx: Tx): Need[] {
  const stops = ignoredStops(tx);
  const items = stops.slice(0, MOST_ITEMS).map((stop) => {
    const label = tx.get(rowById('instances', stop.instance_id))?.label ?? null;
    const named = { ...nameStop(tx, stop), label };
    const { instance_id, since, machine_id, organization_id, machine_name: name } = named;
    const state = stop.is_open ? 'still charged' : 'no longer charged, and its charges are not fully credited';
    const message = `Instance ${instanceWords(named)} is ${state}.`;
    return { subject: `instances/${instance_id}`, name, message, since, machine_id, organization_id };
  });
  return needOf('stop_ignored', stops.length, items);
}

/** Names an instance by its label, if it has one, the beginning of its id, and its organization. */
function instanceWords(of: { instance_id: string; label: string | null; organization_name: string | null }): string {
  const label = of.label === null ? '' : `“${of.label}” `;
  return `${label}${of.instance_id.slice(0, 8)} of ${of.organization_name ?? 'no organization'}`;
}

function disputeNeed(tx: Tx): Need[] {
  const open = query
    .selectFrom('disputes')
    .innerJoin('organizations', 'organizations.id', 'disputes.organization_id')
    .select(['organizations.id', 'name', 'payments_frozen_at as since'])
    .where('disputes.state', '=', sql.lit('open'))
    .groupBy('disputes.organization_id');
  const items = tx.all(open).map(organizationItem);
  return needOf('payment_disputed', items.length, oldestFirst(items));
}

/** The suspended organizations that still have something, which is destroyed unless an operator restores them. */
function suspensionNeed(tx: Tx): Need[] {
  const suspended = query.selectFrom('organizations').where('suspension_look_at', 'is not', null);
  const { count = 0 } = tx.get(suspended.select(COUNT)) ?? {};
  const first = suspended
    .select(['id', 'name', 'suspended_at as since', 'suspended_reason'])
    .orderBy('suspension_look_at')
    .limit(MOST_ITEMS);
  const items = tx.all(first).map((row) => ({ ...organizationItem(row), message: row.suspended_reason }));
  return needOf('organization_suspended', count, items);
}

/** The last admins whom their company has refused as unknown or disabled. */
function refusedNeed(tx: Tx): Need[] {
  const first = query
    .selectFrom('memberships')
    .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .select(['organizations.id', 'organizations.name', 'memberships.refused_at as since', 'users.email'])
    .where('memberships.refused_at', 'is not', null)
    .orderBy('memberships.refused_at')
    .limit(MOST_ITEMS);
  const items = tx.all(first).map((row) => ({ ...organizationItem(row), message: `${row.email} is its last admin` }));
  return needOf('admin_refused', countRefusedAdmins(tx), items);
}

function organizationItem({ id, name, since }: { id: string; name: string; since: number | null }) {
  return { subject: `orgs/${id}`, name, since, organization_id: id };
}
