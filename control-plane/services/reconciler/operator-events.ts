import { MINUTE_MS } from '../../../shared/time.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import { OPERATORS } from '../../domain/event.js';
import { query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import { nameOfMachine } from '../machines/machines.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';

const EVERY_MS = 15_000;
/** Shortest absence that is told: an agent that restarts, or dials again, is shorter. */
const AWAY_AFTER_MS = 2 * MINUTE_MS;
/** A command that is open for longer is stuck. */
const STUCK_AFTER_MS = 15 * MINUTE_MS;
const BATCH = 200;

/**
 * Makes the worker that tells operators of machines that are away or back, and of commands that are stuck. It looks every 15 seconds.
 * Nothing is told in the first two minutes of a control plane, while hosts connect again, nor of machines that are lost. Returns the
 * number of events.
 */
export function operatorTellerOf(platform: Platform): () => { told: number } {
  const absences = new Absences(platform);
  let dueAt = 0;
  return () => {
    const now = platform.clock.monotonic();
    if (now < dueAt || now - platform.bootedAt < GRACE_MS) return { told: 0 };
    platform.connections.noteSilence();
    const told = absences.tell(now) + tellOfStuck(platform);
    // Where many hosts come or go at once, the next run goes on with them.
    dueAt = told < BATCH ? now + EVERY_MS : now;
    return { told };
  };
}

/** Knows which machines are not connected, and since when. */
class Absences {
  /** By machine, in monotonic milliseconds. */
  private missing: Map<string, number> | undefined;
  /** The machines that operators believe to be away. */
  private readonly away = new Set<string>();
  private readonly changed = new Set<string>();

  constructor(private readonly platform: Platform) {
    platform.connections.onChange((machineId) => this.changed.add(machineId));
  }

  tell(now: number): number {
    const { connections, store } = this.platform;
    const missing = (this.missing ??= this.look(now));
    for (const machineId of this.changed) {
      if (connections.isConnected(machineId)) missing.delete(machineId);
      else if (!this.away.has(machineId)) missing.set(machineId, missing.get(machineId) ?? now);
    }
    this.changed.clear();
    const back = [...this.away].filter((machineId) => connections.isConnected(machineId)).slice(0, BATCH);
    const gone = [...missing].filter(([, since]) => now - since >= AWAY_AFTER_MS).slice(0, BATCH - back.length);
    if (back.length + gone.length === 0) return 0;
    store.transact((tx) => {
      for (const machineId of back) tellBack(tx, machineId);
      for (const [machineId] of gone) tellAway(tx, machineId);
    });
    for (const machineId of back) this.away.delete(machineId);
    for (const [machineId] of gone) {
      missing.delete(machineId);
      this.away.add(machineId);
    }
    return back.length + gone.length;
  }

  /** Returns the machines that have not connected since the start, and notes those that were away before it. */
  private look(now: number): Map<string, number> {
    const { store, connections } = this.platform;
    const machines = query.selectFrom('machines').select(['id', 'away_since']).where('removed_at', 'is', null);
    const missing = new Map<string, number>();
    for (const { id, away_since } of store.transact((tx) => tx.all(machines.where('lost_at', 'is', null)))) {
      if (away_since !== null) this.away.add(id);
      if (connections.isConnected(id)) this.changed.add(id);
      else if (away_since === null) missing.set(id, now - AWAY_AFTER_MS);
    }
    return missing;
  }
}

function tellAway(tx: Tx, id: string): void {
  const machine = tx.get(query.selectFrom('machines').selectAll().where('id', '=', id));
  if (machine?.away_since !== null || machine.removed_at !== null || machine.lost_at !== null) return;
  tx.run(updateRows('machines', { away_since: tx.now }, { id }));
  recordEvent(tx, OPERATORS, 'machine.away', `machines/${id}`, nameOfMachine(tx, id));
}

function tellBack(tx: Tx, id: string): void {
  const known = query.updateTable('machines').set({ away_since: null }).where('id', '=', id);
  if (tx.run(known.where('away_since', 'is not', null)) === 0) return;
  recordEvent(tx, OPERATORS, 'machine.back', `machines/${id}`, nameOfMachine(tx, id));
}

function tellOfStuck(platform: Platform): number {
  const stuck = platform.store.transact((tx) =>
    tx.all(
      query
        .selectFrom('commands')
        .select(['id', 'instance_id', 'machine_id', 'kind', 'created_at'])
        .where('state', '=', sql.lit('open'))
        .where('stuck_since', 'is', null)
        .where('created_at', '<=', tx.now - STUCK_AFTER_MS)
        .orderBy('created_at')
        .limit(BATCH),
    ),
  );
  return forEachInOwnTransaction(platform, stuck, (tx, { id, instance_id, machine_id, kind, created_at }) => {
    const open = query.updateTable('commands').set({ stuck_since: tx.now }).where('id', '=', id);
    if (tx.run(open.where('state', '=', sql.lit('open'))) === 0) return;
    const since = new Date(created_at).toISOString();
    const data = { ...nameOfMachine(tx, machine_id), instance_id, command_id: id, command: kind, since };
    recordEvent(tx, OPERATORS, 'command.stuck', `instances/${instance_id}`, data);
  });
}
