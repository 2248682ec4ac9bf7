import { isOff } from '../../domain/machines/clock-difference.js';
import { GPU_USES } from '../../domain/machines/gpu-use.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { auditLagMs } from '../audit-out/cursors.js';
import { openCommands, RESTS_SINCE } from '../instances/stuck-commands.js';
import { findStep } from '../system/clock-steps.js';
import type { Core, Platform } from '../system/platform.js';
import { type HasFleet, noGpus, type FleetMachine, type GpuCounts } from './fleet.js';

/** The counts of the marketplace at one moment. */
export interface Overview {
  /** Machines that are not removed. `lost`: not connected, and declared lost by an operator; `away`: not connected otherwise. */
  hosts: { connected: number; away: number; lost: number };
  gpus: GpuCounts;
  /** GPUs that are not healthy, whatever they are used for: a rented one is `sold`, and its renter pays for it. */
  unhealthyGpus: number;
  /** GPUs that the driver of their host no longer lists. */
  missingGpus: number;
  /** GPUs that a machine reports and that belong to another one. */
  disputedGpus: number;
  /** Connected machines of which a clock is more than two seconds wrong. */
  clocksOff: number;
  /** Whether what cannot be undone waits until an operator confirms the control plane's own clock. */
  isClockHeld: boolean;
  /** Instances that are not destroyed, by status. */
  instances: Record<string, number>;
  /** Open commands by kind, without those of lost machines, and for how long at most one makes no progress, in milliseconds. */
  openCommands: { kind: string; count: number; oldestMs: number }[];
  /** For how many milliseconds the most overdue settlement has been due. */
  settlementLagMs: number;
  /** Organizations whose balance is at or below zero. */
  withoutBalance: number;
  /** Instances whose GPU time is charged again because their host ignored a stop. */
  ignoredStops: number;
  /** Members whom their company has refused as unknown or disabled, and who stay because they are the last admin. */
  refusedAdmins: number;
  /** Workloads in quarantine. */
  quarantined: number;
  /** Deliveries to webhook endpoints that are pending. */
  pendingWebhooks: number;
  /** How long the oldest mail has waited that is to be sent, in milliseconds. */
  oldestMailMs: number;
  /** How long the oldest line has waited that an output of audit lines has not delivered, in milliseconds, by output. */
  auditLagMs: Readonly<Record<string, number>>;
}

export function readOverview(platform: Platform & HasFleet): Overview {
  const fleet = [...platform.fleet.machines()];
  return platform.store.transact((tx) => ({
    hosts: countHosts(platform, fleet),
    gpus: countGpus(fleet),
    unhealthyGpus: fleet.reduce((sum, { unhealthy }) => sum + unhealthy, 0),
    missingGpus: fleet.reduce((sum, { missing }) => sum + missing, 0),
    disputedGpus: fleet.reduce((sum, { disputed }) => sum + disputed, 0),
    clocksOff: fleet.filter(
      ({ machine: { id } }) => platform.connections.isConnected(id) && isOff(platform.connections.clockOf(id)),
    ).length,
    isClockHeld: findStep(tx) !== undefined,
    instances: countInstances(tx),
    openCommands: countCommands(tx),
    settlementLagMs: settlementLag(tx),
    withoutBalance: countEmpty(tx),
    ignoredStops: countIgnoredStops(tx),
    refusedAdmins: countRefusedAdmins(tx),
    quarantined: countQuarantined(tx),
    pendingWebhooks: tx.get(pendingWebhooks)?.count ?? 0,
    oldestMailMs: oldestMail(tx),
    auditLagMs: platform.isDrill ? {} : auditLagMs(tx),
  }));
}

/** Counts machines by what they are to operators: see {@link Overview}. */
export function countHosts(platform: Platform, fleet: readonly FleetMachine[]): Overview['hosts'] {
  const hosts = { connected: 0, away: 0, lost: 0 };
  for (const { machine } of fleet) hosts[presenceOf(platform, machine)] += 1;
  return hosts;
}

/** Tells which of the counts of {@link countHosts} a machine belongs to. */
export function presenceOf({ connections }: Platform, { id, lost_at }: FleetMachine['machine']) {
  return connections.isConnected(id) ? 'connected' : lost_at === null ? 'away' : 'lost';
}

function countGpus(fleet: readonly FleetMachine[]): Overview['gpus'] {
  const sums = noGpus();
  for (const { models } of fleet)
    for (const counts of models.values()) for (const use of GPU_USES) sums[use] += counts[use];
  return sums;
}

export const COUNT = sql<number>`count(*)`.as('count');

const pendingWebhooks = query.selectFrom('webhook_deliveries').select(COUNT).where('state', '=', sql.lit('pending'));

function countInstances(tx: Tx): Record<string, number> {
  const live = query.selectFrom('instances').select(['status', COUNT]).where('status', '<>', sql.lit('destroyed'));
  const rows = tx.all(live.groupBy('status'));
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

/** Returns the number of destroyed instances. Reads an entry of each: for the start of the process alone. */
export function countDestroyed({ store }: Pick<Core, 'store'>): number {
  const destroyed = query.selectFrom('instances').select(COUNT).where('status', '=', 'destroyed');
  return store.transact((tx) => tx.get(destroyed))?.count ?? 0;
}

function countCommands(tx: Tx): Overview['openCommands'] {
  const oldest = sql<number>`min(${RESTS_SINCE})`.as('oldest');
  const open = openCommands().select(['kind', COUNT, oldest]).groupBy('kind');
  return tx.all(open).map(({ kind, count, oldest: since }) => ({ kind, count, oldestMs: Math.max(tx.now - since, 0) }));
}

export function countQuarantined(tx: Tx): number {
  return tx.get(query.selectFrom('quarantine').select(COUNT))?.count ?? 0;
}

export function countRefusedAdmins(tx: Tx): number {
  return tx.get(query.selectFrom('memberships').select(COUNT).where('refused_at', 'is not', null))?.count ?? 0;
}

function countIgnoredStops(tx: Tx): number {
  const open = query.selectFrom('meter_intervals').select(COUNT).where('closed_at', 'is', null);
  return tx.get(open.where('after_stop', '=', sql.lit(1)))?.count ?? 0;
}

export function settlementLag(tx: Tx): number {
  const first = query.selectFrom('organizations').select('settle_at').where('settle_at', 'is not', null);
  const due = tx.get(first.orderBy('settle_at').limit(1))?.settle_at;
  return Math.max(tx.now - (due ?? tx.now), 0);
}

export function oldestMail(tx: Tx): number {
  const queued = query.selectFrom('mails').select('created_at').where('state', '=', sql.lit('queued'));
  const oldest = tx.get(queued.orderBy('created_at').limit(sql.lit(1)))?.created_at;
  return Math.max(tx.now - (oldest ?? tx.now), 0);
}

function countEmpty(tx: Tx): number {
  const empty = query.selectFrom('organizations').select(COUNT).where('balance_micro', '<=', sql.lit(0));
  return tx.get(empty)?.count ?? 0;
}
