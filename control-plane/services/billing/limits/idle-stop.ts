import { MINUTE_MS } from '../../../../shared/time.js';
import { GRACE_MS } from '../../../domain/deadlines.js';
import { idleAfter, idleStep, isIdle, type IdleSpan } from '../../../domain/instances/idle.js';
import type { TimedUse } from '../../../domain/instances/measurement.js';
import { instancePorts } from '../../../domain/catalogue/template-port.js';
import { updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { readTemplateSnapshot } from '../../catalogue/stored-template.js';
import type { HasHostBudgets } from '../../events/host-budget.js';
import { recordInstanceEvent } from '../../events/record.js';
import { findInstance, type Instance } from '../../instances/queries.js';
import { requestDestroy, requestStop } from '../../instances/requests.js';
import type { MeasuredInstance } from '../../measurements/record.js';
import type { Platform } from '../../system/platform.js';
import { limitDestroys } from './enforce-limits.js';

/**
 * Follows how long a running instance is idle, by minutes that its host has measured: tells its renter ten minutes before the stop, and
 * stops it. Nothing happens in the first two minutes of a control plane.
 */
export function followIdle(
  platform: Platform & HasHostBudgets,
  tx: Tx,
  measured: MeasuredInstance,
  minutes: readonly TimedUse[],
): void {
  const { idle_stop_minutes, status, idle_stops_at } = measured;
  if (idle_stop_minutes === null || status !== 'running') return;
  const before = spanOf(measured);
  const span = spanAfter(tx, measured, minutes);
  const stopsAt = span !== null && span.from === before?.from ? idle_stops_at : null;
  const step = span && idleStep(span, idle_stop_minutes * MINUTE_MS, stopsAt, tx.now);
  const isInGrace = platform.clock.monotonic() - platform.bootedAt < GRACE_MS;
  if (step?.is === 'stop' && !isInGrace) return stopIdle(platform, tx, getInstance(tx, measured.id), idle_stop_minutes);
  const tells = span !== null && step?.is === 'tell' && platform.hostBudgets.mayTell(measured.id);
  if (tells) tell(tx, getInstance(tx, measured.id), span, step.stopsAt);
  const next = tells ? step.stopsAt : stopsAt;
  if (span?.from === before?.from && span?.to === before?.to && next === idle_stops_at) return;
  keep(tx, measured.id, span, next);
}

function spanOf({ idle_from, idle_to }: Pick<Instance, 'idle_from' | 'idle_to'>): IdleSpan | null {
  return idle_from === null || idle_to === null ? null : { from: idle_from, to: idle_to };
}

function spanAfter(tx: Tx, measured: MeasuredInstance, minutes: readonly TimedUse[]): IdleSpan | null {
  const { id, num_gpus, status_changed_at: since } = measured;
  let hasPorts: boolean | undefined;
  const asksPorts = () => (hasPorts ??= publishesPorts(getInstance(tx, id)));
  const oldestFirst = [...minutes].sort((one, other) => one.at - other.at);
  return oldestFirst.reduce(
    (span, minute) => idleAfter(span, minute, isIdle(minute.use, num_gpus, asksPorts), { since, now: tx.now }),
    spanOf(measured),
  );
}

/** Tells whether an instance publishes ports besides SSH. */
function publishesPorts({ template_snapshot }: Instance): boolean {
  const { mode, ports } = readTemplateSnapshot(template_snapshot);
  return instancePorts(mode, ports).length > 0;
}

function getInstance(tx: Tx, id: string): Instance {
  const instance = findInstance(tx, id);
  if (!instance) throw new Error(`instance ${id} is measured and is missing in the database`);
  return instance;
}

function keep(tx: Tx, id: string, span: IdleSpan | null, stopsAt: number | null): void {
  const kept = { idle_from: span?.from ?? null, idle_to: span?.to ?? null, idle_stops_at: stopsAt };
  tx.run(updateRows('instances', kept, { id }));
}

function tell(tx: Tx, { id, on_limit }: Instance, { from }: IdleSpan, stopsAt: number): void {
  const [idle_since, stops_at] = [new Date(from).toISOString(), new Date(stopsAt).toISOString()];
  const end = on_limit === 'destroy' ? 'destroyed with its disk' : 'stopped';
  const message = `it is idle since ${idle_since}: unless it is used, it is ${end} at ${stops_at}`;
  recordInstanceEvent(tx, id, 'instance.idle', { kind: 'idle', message }, { idle_since, stops_at });
}

function stopIdle(platform: Platform, tx: Tx, instance: Instance, minutes: number): void {
  keep(tx, instance.id, null, null);
  const idle = `it was idle for ${minutes} minutes, its idle_stop_minutes`;
  if (limitDestroys(platform, tx, instance, { kind: 'idle' }))
    requestDestroy(tx, instance, { kind: 'idle_stop', message: `${idle}: it is destroyed, as you have set` });
  else requestStop(tx, instance, { kind: 'idle_stop', message: `${idle}: it is stopped, and its disk is kept` });
}
