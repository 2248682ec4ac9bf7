import { MINUTE_MS } from '../../../shared/time.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { ReportedRun as Run, AgentConnections } from '../connections/agent-connections.js';
import { UNREPORTED, settleSoon, type IntervalRow } from './meters.js';

/** For so long a host that has spoken is taken to have its workloads running still. */
export const SILENCE_MS = 2 * MINUTE_MS;
/** What is attested is written down no more often than this, unless something has changed. */
const GRAIN_MS = 30_000;

/** Of a run that has come up by a command, or was removed while it was up: the time up to now was had. */
export function recordUsageUp(tx: Tx, instanceId: string, run: Run): void {
  for (const interval of unreportedOf(tx, instanceId)) recordUsage(tx, interval, run, tx.now - run.ms);
}

/** Of a run that is known already. A word that has waited to be sent does not tell when a new run began; a heartbeat will. */
export function recordUsageOfKnownRun(tx: Tx, instanceId: string, run: Run): void {
  for (const interval of unreportedOf(tx, instanceId)) {
    if (interval.run_id === run.runId) recordUsage(tx, interval, run, tx.now - run.ms);
  }
}

/** A heartbeat: everything that runs on the host. */
export function recordUsageOfRunning(tx: Tx, machineId: string, runs: ReadonlyMap<string, Run>): void {
  const intervals = tx.all(unreported().where('machine_id', '=', machineId).orderBy('id'));
  for (const interval of intervals) {
    const run = runs.get(interval.instance_id);
    if (run && isNews(tx, interval, run)) recordUsage(tx, interval, run, tx.now - run.ms);
  }
}

/**
 * How far GPU time is certain: as far as it was written down, or as a heartbeat since has it, which is written down only at a
 * coarser grain.
 */
export function certainTo(connections: AgentConnections, now: number, interval: IntervalRow): number {
  const { machine_id, instance_id, run_id, run_began_at, attested_to, closed_at } = interval;
  const heard = connections.lastHeard(machine_id, instance_id);
  if (run_id === null || run_began_at === null || heard?.runId !== run_id) return attested_to;
  const heardTo = Math.min(run_began_at + heard.ms, now - heard.agoMs);
  return Math.max(attested_to, Math.min(heardTo, closed_at ?? now));
}

/**
 * A run has ended, after `run.ms` in all. Nothing more of it will be attested. A run that both began and ended in a gap is taken
 * to have lasted until it was heard of; of one whose beginning is not known, nothing is taken.
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
 * Moves on how far an interval is certain: the host's duration, counted from when the run began. Of every word of the host the
 * least delayed one tells best when that was, so no time is had twice however late a word comes. Answers the interval that is
 * the run's own.
 */
function recordUsage(tx: Tx, interval: IntervalRow, run: Run, began: number): number {
  if (endOf(tx, interval) - interval.attested_to > SILENCE_MS || interval.closed_at !== null)
    settleSoon(tx, interval.organization_id);
  const run_began_at = Math.min(began, knownStart(tx, interval.instance_id, run) ?? Infinity);
  if (!isSameRun(interval, run)) return beginRun(tx, interval, run, run_began_at);
  // What lies before a run that is heard of for the first time was not had.
  const isFirst = interval.run_began_at === null;
  const opened_at = isFirst ? clamp(run_began_at, interval.opened_at, endOf(tx, interval)) : interval.opened_at;
  const attested_to = clamp(run_began_at + run.ms, Math.max(interval.attested_to, opened_at), endOf(tx, interval));
  const settled_to = Math.max(interval.settled_to, opened_at);
  const changes = { opened_at, attested_to, settled_to, run_id: run.runId, run_began_at };
  tx.run(query.updateTable('meter_intervals').set(changes).where('id', '=', interval.id));
  return interval.id;
}

/**
 * When a run began, as the control plane has heard before, of any interval: an answer that comes late may say that a run is up
 * whose end has been told, and charged, before.
 */
function knownStart(tx: Tx, instanceId: string, { runId }: Run): number | null {
  const its = query.selectFrom('meter_intervals').where('instance_id', '=', instanceId).where('run_id', '=', runId);
  return tx.get(its.select(({ fn }) => fn.min('run_began_at').as('earliest')))?.earliest ?? null;
}

/** Another run than the one before: what lies between them was not had. */
function beginRun(tx: Tx, interval: IntervalRow, run: Run, began: number): number {
  const { id, instance_id, organization_id, machine_id, meter, attested_to, closed_at, after_stop } = interval;
  tx.run(query.updateTable('meter_intervals').set({ closed_at: attested_to }).where('id', '=', id));
  if (closed_at !== null && began >= closed_at) return id;
  const opened_at = clamp(began, attested_to, endOf(tx, interval));
  const next = { instance_id, organization_id, machine_id, meter, opened_at, closed_at, after_stop };
  const certain = clamp(began + run.ms, opened_at, endOf(tx, interval));
  const times = { attested_to: certain, settled_to: opened_at, run_id: run.runId, run_began_at: began };
  const inserted = query
    .insertInto('meter_intervals')
    .values({ ...next, ...times })
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
  return tx.all(unreported().where('instance_id', '=', instanceId).orderBy('id'));
}

function unreported() {
  return query.selectFrom('meter_intervals').selectAll().where(UNREPORTED);
}
