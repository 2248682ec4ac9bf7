import { MINUTE_MS } from '../../../shared/time.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { ReportedRun as Run, AgentConnections } from '../connections/agent-connections.js';
import { UNREPORTED, settleSoon, type IntervalRow } from './meters.js';

/** A run counts as going on for this long after its host's last report of it. */
export const SILENCE_MS = 2 * MINUTE_MS;
/** Shortest time between two writes of attested time, unless the run has changed. */
const GRAIN_MS = 30_000;

/** Records the usage, up to now, of a run that a command has started, or that a command has removed while it was up. */
export function recordUsageUp(tx: Tx, instanceId: string, run: Run): void {
  for (const interval of unreportedOf(tx, instanceId)) recordUsage(tx, interval, run, tx.now - run.ms);
}

/**
 * Records the usage of a run that is already known. A report can have waited in the agent's outbox, so it does not tell when a new
 * run began; the next heartbeat does.
 */
export function recordUsageOfKnownRun(tx: Tx, instanceId: string, run: Run): void {
  for (const interval of unreportedOf(tx, instanceId)) {
    if (interval.run_id === run.runId) recordUsage(tx, interval, run, tx.now - run.ms);
  }
}

/** Records the usage of all runs of a heartbeat. */
export function recordUsageOfRunning(tx: Tx, machineId: string, runs: ReadonlyMap<string, Run>): void {
  const intervals = tx.all(unreportedOn({ machineId }));
  for (const interval of intervals) {
    const run = runs.get(interval.instance_id);
    if (run && isNews(tx, interval, run)) recordUsage(tx, interval, run, tx.now - run.ms);
  }
}

/**
 * Returns up to when GPU time of an interval is certain, in ms since 1970 UTC: `attested_to`, or later if a heartbeat since has
 * reported the same run. Heartbeats are written only every 30 seconds.
 */
export function certainTo(connections: AgentConnections, now: number, interval: IntervalRow): number {
  const { machine_id, instance_id, run_id, run_began_at, attested_to, closed_at } = interval;
  const heard = connections.lastHeard(machine_id, instance_id);
  if (run_id === null || run_began_at === null || heard?.runId !== run_id) return attested_to;
  const heardTo = Math.min(run_began_at + heard.ms, now - heard.agoMs);
  return Math.max(attested_to, Math.min(heardTo, closed_at ?? now));
}

/**
 * Records the usage of a run that has ended after `run.ms`, and ends its closed intervals there. If the start of the run is unknown
 * but another run was reported before, it counts up to the end of the interval. If no other run was, nothing is charged.
 */
export function recordUsageAtEnd(tx: Tx, instanceId: string, run: Run): void {
  const intervals = unreportedOf(tx, instanceId);
  const newest = intervals.at(-1);
  if (!newest) return;
  const unheard = (isSameRun(newest, run) ? newest.opened_at : endOf(tx, newest)) - run.ms;
  const began = knownStart(tx, instanceId, run) ?? unheard;
  for (const interval of intervals) {
    const attested = recordUsage(tx, interval, run, began);
    tx.run(
      query
        .updateTable('meter_intervals')
        .set({ closed_at: sql<number>`attested_to` })
        .where('id', '=', attested)
        .where('closed_at', 'is not', null),
    );
  }
}

/**
 * Moves `attested_to` of an interval to the start of the run plus the duration that the host reports. Each message implies a start (arrival
 * minus duration). Delay only makes it later, so the earliest is kept: a late message never charges the same time twice. But a host whose
 * clock was wrong once must not lose all later time, so no start is taken from before `run_not_before`. Returns the id of the run's own
 * interval.
 */
function recordUsage(tx: Tx, interval: IntervalRow, run: Run, began: number): number {
  if (endOf(tx, interval) - interval.attested_to > SILENCE_MS || interval.closed_at !== null)
    settleSoon(tx, interval.organization_id);
  const earliest = Math.min(began, knownStart(tx, interval.instance_id, run) ?? Infinity);
  if (!isSameRun(interval, run)) return beginRun(tx, interval, run, earliest);
  const run_began_at = Math.max(earliest, interval.run_not_before ?? -Infinity);
  // The first report of a run tells when it began: the interval must not start before.
  const isFirst = interval.run_began_at === null;
  const opened_at = isFirst ? clamp(run_began_at, interval.opened_at, endOf(tx, interval)) : interval.opened_at;
  const attested_to = clamp(run_began_at + run.ms, Math.max(interval.attested_to, opened_at), endOf(tx, interval));
  const settled_to = Math.max(interval.settled_to, opened_at);
  const changes = { opened_at, attested_to, settled_to, run_id: run.runId, run_began_at };
  tx.run(attest({ ...changes, id: interval.id }));
  return interval.id;
}

type Attested = Pick<IntervalRow, 'id' | 'opened_at' | 'attested_to' | 'settled_to' | 'run_id' | 'run_began_at'>;

const attest = compileOnce(({ id, opened_at, attested_to, settled_to, run_id, run_began_at }: Attested) =>
  query
    .updateTable('meter_intervals')
    .set({ opened_at, attested_to, settled_to, run_id, run_began_at })
    .where('id', '=', id),
);

/**
 * Returns the earliest start of a run that any interval of the instance has, or null. It must include closed intervals: a late
 * answer can report a run as up whose end is already reported and charged.
 */
function knownStart(tx: Tx, instanceId: string, { runId }: Run): number | null {
  return tx.get(startOfRun({ instanceId, runId }))?.earliest ?? null;
}

const startOfRun = compileOnce(({ instanceId, runId }: { instanceId: string; runId: string }) =>
  query
    .selectFrom('meter_intervals')
    .select(({ fn }) => fn.min('run_began_at').as('earliest'))
    .where('instance_id', '=', instanceId)
    .where('run_id', '=', runId),
);

/**
 * Ends the interval of the earlier run at its attested time and opens one for this run; the time between them is never charged.
 * Returns the id of the new interval, or of the old one if the run began after its end.
 */
function beginRun(tx: Tx, interval: IntervalRow, run: Run, earliest: number): number {
  const { id, instance_id, organization_id, machine_id, meter, attested_to, closed_at, after_stop } = interval;
  const { capped_key_id } = interval;
  // Where its host has attested some of it, the earlier run was up until then.
  const upTo = attested_to > interval.opened_at ? attested_to : -Infinity;
  const run_not_before = Math.max(upTo, interval.run_not_before ?? -Infinity);
  const began = Math.max(earliest, run_not_before);
  tx.run(query.updateTable('meter_intervals').set({ closed_at: attested_to }).where('id', '=', id));
  if (closed_at !== null && began >= closed_at) return id;
  const opened_at = clamp(began, attested_to, endOf(tx, interval));
  const next = { instance_id, organization_id, machine_id, meter, opened_at, closed_at, after_stop, capped_key_id };
  const certain = clamp(began + run.ms, opened_at, endOf(tx, interval));
  const times = { attested_to: certain, settled_to: opened_at };
  const its = { run_id: run.runId, run_began_at: began };
  const floor = { run_not_before: Number.isFinite(run_not_before) ? run_not_before : null };
  const inserted = query
    .insertInto('meter_intervals')
    .values({ ...next, ...times, ...its, ...floor })
    .returning('id');
  settleSoon(tx, organization_id);
  return tx.get(inserted)?.id ?? id;
}

function isNews(tx: Tx, interval: IntervalRow, run: Run): boolean {
  const isKnown = interval.closed_at === null && interval.run_began_at !== null && isSameRun(interval, run);
  return !isKnown || tx.now - interval.attested_to >= GRAIN_MS;
}

function isSameRun({ run_id }: IntervalRow, { runId }: Run): boolean {
  return run_id === null || run_id === runId;
}

function endOf(tx: Tx, { closed_at, attested_to }: IntervalRow): number {
  return closed_at ?? Math.max(tx.now, attested_to);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

function unreportedOf(tx: Tx, instanceId: string): IntervalRow[] {
  return tx.all(unreportedBy({ instanceId }));
}

const unreportedBy = compileOnce(({ instanceId }: { instanceId: string }) =>
  unreported().where('instance_id', '=', instanceId).orderBy('id'),
);

const unreportedOn = compileOnce(({ machineId }: { machineId: string }) =>
  unreported().where('machine_id', '=', machineId).orderBy('id'),
);

function unreported() {
  return query.selectFrom('meter_intervals').selectAll().where(UNREPORTED);
}
