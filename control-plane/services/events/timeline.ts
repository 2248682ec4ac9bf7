import type { RawBuilder } from 'kysely';
import { MINUTE_MS } from '../../../shared/time.js';
import { percentOf } from '../../domain/event.js';
import { hostEvent, type InstanceErrorCode, type PlatformEvent } from '../../domain/instances/instance-codes.js';
import type { InstanceStatus } from '../../domain/instances/instance-state.js';
import type { ScheduleAction } from '../../domain/instances/schedule.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { HasHostBudgets } from './host-budget.js';
import { recordInstanceEvent } from './record.js';

/** Why a status changes: what the renter reads. */
export interface Reason {
  kind: PlatformEvent | InstanceErrorCode;
  message: string;
}

/** How often an attempt that goes on is told again. */
const AGAIN_MS = 5 * MINUTE_MS;

/** Adds an event to the timeline that the renter reads, which changes no status. */
export function recordNote(tx: Tx, instanceId: string, kind: Reason['kind'], message: string): void {
  recordInstanceEvent(tx, instanceId, 'instance.noted', { kind, message }, {});
}

export function recordGpusReleased(tx: Tx, instanceId: string, message: string): void {
  recordInstanceEvent(tx, instanceId, 'instance.gpus_released', { kind: 'gpus_released', message }, {});
}

/** Adds the event of an action that the schedule of an instance could not carry out. */
export function recordScheduleRefused(
  tx: Tx,
  instanceId: string,
  action: ScheduleAction,
  { code, message }: { code: string; message: string },
): void {
  const reason: Reason = { kind: 'schedule_refused', message: `its schedule could not ${action} it: ${message}` };
  recordInstanceEvent(tx, instanceId, 'instance.schedule_refused', reason, { action, code });
}

/** Adds the event of a change of status; `previous` is null for a new instance. */
export function recordTransition(
  tx: Tx,
  { id, status }: { id: string; status: InstanceStatus },
  previous: InstanceStatus | null,
  reason: Reason,
): void {
  recordInstanceEvent(tx, id, 'instance.status_changed', reason, { previous_status: previous, status });
}

/** Adds a note in the words of a host. Drops it if the host has said too much of this instance. */
export function recordHostNote(
  { hostBudgets }: HasHostBudgets,
  tx: Tx,
  instanceId: string,
  { kind, message }: Reason,
): void {
  if (hostBudgets.mayTell(instanceId)) recordNote(tx, instanceId, kind, message);
}

/** What a host reports each minute while it does not succeed. */
const ATTEMPTS: readonly string[] = ['stop_attempt', 'destroy_attempt'];

/**
 * Adds an event that a host reports. A step that goes on is told again with each tenth of it and with other words; an attempt that goes
 * on, also every five minutes. A kind that is not for hosts becomes another one ({@link hostEvent}).
 */
export function recordHostEvent(
  { hostBudgets }: HasHostBudgets,
  tx: Tx,
  instanceId: string,
  { kind: told, message }: { kind: string; message: string },
): void {
  const kind = hostEvent(told);
  const last = tx.get(lastOf({ instanceId }));
  if (last?.kind === kind && kind === told && !tellsMore(tx, last, message)) return;
  if (!hostBudgets.mayTell(instanceId)) return;
  recordInstanceEvent(tx, instanceId, 'instance.progress', { kind, message }, { percent: percentOf(message) });
}

function tellsMore(
  tx: Tx,
  last: { kind: string | null; message: string | null; at: number },
  message: string,
): boolean {
  const [before, now] = [percentOf(last.message ?? ''), percentOf(message)];
  if (before === null || now === null) {
    const isOverdue = ATTEMPTS.includes(last.kind ?? '') && tx.now - last.at >= AGAIN_MS;
    return isOverdue || withoutNumbers(last.message ?? '') !== withoutNumbers(message);
  }
  return Math.floor(before / 10) !== Math.floor(now / 10);
}

/** The words of an attempt also say how long it has lasted. */
function withoutNumbers(message: string): string {
  return message.replace(/\d+/g, '');
}

const lastOf = compileOnce(({ instanceId }: { instanceId: string }) =>
  query
    .selectFrom('events')
    .select(['kind', 'message', 'at'])
    .where('instance_id', '=', instanceId)
    .orderBy('number', 'desc')
    .limit(sql.lit(1)),
);

/** Returns the query of the events of an instance of this kind. */
export function eventsOfKind(instanceId: string | RawBuilder<string>, kind: string) {
  return query.selectFrom('events').select('number').where('instance_id', '=', instanceId).where('kind', '=', kind);
}

/** What the timeline of an instance shows of an event. */
export interface TimelineEvent {
  number: number;
  at: number;
  kind: string;
  message: string;
}

/** Returns the query of the timeline of an instance, in no order. */
export function timelineOf(instanceId: string) {
  return query
    .selectFrom('events')
    .select(['number', 'at'])
    .select((eb) => [eb.ref('kind').$notNull().as('kind'), eb.ref('message').$notNull().as('message')])
    .where('instance_id', '=', instanceId);
}
