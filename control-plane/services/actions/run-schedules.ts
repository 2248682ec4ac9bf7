import { MINUTE_MS } from '../../../shared/time.js';
import { SYSTEM } from '../../domain/act.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import { Refusal } from '../../domain/refusal.js';
import { SCHEDULE_MISSED, decide, type Occurrence } from '../../domain/instances/schedule.js';
import { readMeta, writeMeta } from '../../store/meta.js';
import type { Tx } from '../../store/store.js';
import { settleOrganizations } from '../billing/settle/settle.js';
import { recordScheduleRefused } from '../events/timeline.js';
import { findCommand, type CommandRow } from '../instances/commands.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { requestStop } from '../instances/requests.js';
import {
  changeSchedule,
  dropSchedule,
  dueOf,
  lookAtSchedulesAgain,
  nextAfter,
  scheduleOf,
  schedulesToLookAt,
  type Schedule,
  type ScheduleRow,
} from '../instances/schedules.js';
import { findMachineRow } from '../machines/machines.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { zonesVersion } from '../system/time-zones.js';
import { ANSWER_TIMEOUT_MS, beginStart, outcomeOfStart, refusalOf, undoUnanswered } from './start.js';

/** Most schedules that one run looks at. */
const BATCH = 50;
/** How soon a schedule is looked at again: for the answer of a host, while something else is under way, and after a failure. */
const AGAIN_MS = { answer: 1_000, waiting: 5_000, failed: MINUTE_MS };

/**
 * Makes the worker that carries out schedules. Does nothing while an operator must confirm the clock. A start is recorded and answered
 * for in later runs, so no run waits for a host. Each schedule has a transaction of its own. Returns how many schedules it has looked
 * at, at most {@link BATCH}.
 */
export function schedulerOf(platform: Platform): () => { schedules: number } {
  let knowsZones = false;
  return () => {
    if (!platform.clockSteps.isTrusted()) return { schedules: 0 };
    knowsZones ||= platform.store.transact(noteZones);
    const { now, rows } = platform.store.transact((tx) => ({ now: tx.now, rows: schedulesToLookAt(tx, BATCH) }));
    const schedules = forEachInOwnTransaction(
      platform,
      rows,
      (tx, row) => lookAt(platform, tx, row, now),
      (tx, row, error) => noteFailure(tx, row, now, error),
    );
    return { schedules };
  };
}

/** Times of other zones may differ in another version of their database: then every schedule is looked at again. */
function noteZones(tx: Tx): true {
  const version = zonesVersion();
  if (readMeta(tx, 'zones_version') === version) return true;
  writeMeta(tx, 'zones_version', version);
  lookAtSchedulesAgain(tx);
  return true;
}

function lookAt(platform: Platform, tx: Tx, row: ScheduleRow, now: number): void {
  const instance = findInstance(tx, row.instance_id);
  if (!instance) return dropSchedule(tx, row.instance_id);
  const pending = row.start_command === null ? undefined : findCommand(tx, row.start_command);
  if (pending) return followStart(platform, tx, row, instance, pending);
  const schedule = knownSchedule(row);
  const due = dueOf(schedule, row, now);
  if (!due) return goOn(tx, row, nextAfter(schedule, now));
  const circumstances = {
    lateMs: now - due.at,
    // A start waits for room on a full disk just as for the status.
    isStatusKnown: isStatusKnown(tx, instance) && !(due.action === 'start' && platform.room.isFull),
    areHostsExpected: areHostsExpected(platform),
  };
  switch (decide(due.action, instance.status, circumstances)) {
    case 'wait':
      return changeSchedule(tx, row.instance_id, { look_at: tx.now + AGAIN_MS.waiting });
    case 'nothing':
      return goOn(tx, row, nextAfter(schedule, due.at));
    case 'missed':
      recordScheduleRefused(tx, instance.id, due.action, missed(due));
      return goOn(tx, row, nextAfter(schedule, due.at));
    case 'carry_out':
      return carryOut(platform, tx, row, instance, { due, next_at: nextAfter(schedule, due.at) });
  }
}

/** Does what is due. Refuses like a start; then nothing is kept, and {@link noteFailure} tells the renter. */
function carryOut(
  platform: Platform,
  tx: Tx,
  row: ScheduleRow,
  instance: Instance,
  { due, next_at }: { due: Occurrence; next_at: number },
): void {
  if (due.action === 'stop') {
    requestStop(tx, instance, { kind: 'schedule_stop', message: 'stopped by its schedule' });
    return goOn(tx, row, next_at);
  }
  settleOrganizations(platform, tx, [instance.organization_id]);
  const settled = findInstance(tx, instance.id) ?? instance;
  const reason = { kind: 'schedule_start', message: 'started by its schedule' } as const;
  const { command } = beginStart(platform, tx, settled, { by: SYSTEM, apiKeyId: row.key_id, reason });
  const look_at = tx.now + AGAIN_MS.answer;
  changeSchedule(tx, row.instance_id, { next_at, look_at, start_command: command.id });
}

/**
 * Looks how a start goes that was recorded earlier: once its host has answered, the schedule goes on. Without an answer in time the
 * start is undone, but not while hosts may not be connected yet.
 */
function followStart(platform: Platform, tx: Tx, row: ScheduleRow, instance: Instance, start: CommandRow): void {
  const isLate = tx.now - start.created_at >= ANSWER_TIMEOUT_MS;
  const mayUndo = isLate && areHostsExpected(platform) && isStatusKnown(tx, instance);
  const outcome = outcomeOfStart(tx, start) ?? (mayUndo ? undoUnanswered(tx, start) : undefined);
  if (!outcome) return changeSchedule(tx, row.instance_id, { look_at: tx.now + AGAIN_MS.answer });
  const refusal = refusalOf(outcome);
  const runsAnyway = outcome.is === 'overtaken' && outcome.by === 'running';
  if (refusal && !runsAnyway) recordScheduleRefused(tx, instance.id, 'start', refusal);
  changeSchedule(tx, row.instance_id, { look_at: row.next_at, start_command: null });
}

/** Tells the renter of a refusal. Anything else that goes wrong is tried again after a minute. */
function noteFailure(tx: Tx, row: ScheduleRow, now: number, error: unknown): 'handled' | undefined {
  const schedule = scheduleOf(row);
  const due = schedule && dueOf(schedule, row, now);
  if (!(error instanceof Refusal) || !due) {
    changeSchedule(tx, row.instance_id, { look_at: tx.now + AGAIN_MS.failed });
    return undefined;
  }
  recordScheduleRefused(tx, row.instance_id, due.action, error);
  goOn(tx, row, nextAfter(schedule, due.at));
  return 'handled';
}

function goOn(tx: Tx, { instance_id }: ScheduleRow, next_at: number): void {
  changeSchedule(tx, instance_id, { next_at, look_at: next_at });
}

function knownSchedule(row: ScheduleRow): Schedule {
  const schedule = scheduleOf(row);
  if (!schedule) throw new Error(`the time zone ${row.time_zone} of a schedule is unknown to this version of Node`);
  return schedule;
}

function missed({ at }: Occurrence): { code: string; message: string } {
  const time = new Date(at).toISOString();
  return { code: SCHEDULE_MISSED, message: `the start was due at ${time} and could not be tried within an hour` };
}

/** After a restore, the status of an instance is an older one until its host has connected. */
function isStatusKnown(tx: Tx, { machine_id }: Instance): boolean {
  const { needs_resync, lost_at, removed_at } = findMachineRow(tx, machine_id);
  return needs_resync === 0 || lost_at !== null || removed_at !== null;
}

/** In its first two minutes, a control plane does not count hosts as away: they may not have connected yet. */
function areHostsExpected({ clock, bootedAt }: Platform): boolean {
  return clock.monotonic() - bootedAt >= GRACE_MS;
}
