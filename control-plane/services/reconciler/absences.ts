import { MINUTE_MS } from '../../../shared/time.js';
import { OPERATORS } from '../../domain/event.js';
import { query, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import { nameOfMachine } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';

/** Shortest absence that is told: an agent that restarts, or dials again, is shorter. */
const AWAY_AFTER_MS = 2 * MINUTE_MS;
const BATCH = 200;

/** Knows which machines are not connected, and since when. Tells operators of those that are away, and that are back. */
export class Absences {
  /** Since when, by machine, in monotonic milliseconds; undefined before the first look. */
  private missing: Map<string, number> | undefined;
  /** The machines that operators believe to be away. */
  private readonly away = new Set<string>();
  private readonly changed = new Set<string>();

  constructor(private readonly platform: Platform) {
    platform.connections.onChange((machineId) => this.changed.add(machineId));
  }

  /** Tells of at most 200 machines in one transaction; `goesOn` says that there may be more. */
  tell(now: number): { told: number; goesOn: boolean } {
    const { connections, store } = this.platform;
    const missing = (this.missing ??= this.look(now));
    for (const machineId of this.changed) {
      if (connections.isConnected(machineId)) missing.delete(machineId);
      else if (!this.away.has(machineId)) missing.set(machineId, missing.get(machineId) ?? now);
    }
    this.changed.clear();
    const back = [...this.away].filter((machineId) => connections.isConnected(machineId)).slice(0, BATCH);
    const gone = [...missing].filter(([, since]) => now - since >= AWAY_AFTER_MS).slice(0, BATCH - back.length);
    const told = back.length + gone.length;
    if (told === 0) return { told, goesOn: false };
    store.transact((tx) => {
      for (const machineId of back) tellBack(tx, machineId);
      for (const [machineId, since] of gone) tellAway(tx, machineId, tx.now - (now - since));
    });
    for (const machineId of back) this.away.delete(machineId);
    for (const [machineId] of gone) {
      missing.delete(machineId);
      this.away.add(machineId);
    }
    return { told, goesOn: told === BATCH };
  }

  /** Returns the machines that have not connected since the start, and notes those that were away before it. */
  private look(now: number): Map<string, number> {
    const { store, connections, bootedAt } = this.platform;
    const machines = query.selectFrom('machines').select(['id', 'away_since']).where('removed_at', 'is', null);
    const missing = new Map<string, number>();
    for (const { id, away_since } of store.transact((tx) => tx.all(machines))) {
      if (away_since !== null) this.away.add(id);
      else if (!connections.isConnected(id)) missing.set(id, Math.min(bootedAt, now - AWAY_AFTER_MS));
    }
    return missing;
  }
}

function tellAway(tx: Tx, id: string, since: number): void {
  const machine = tx.get(query.selectFrom('machines').selectAll().where('id', '=', id));
  // A host that has only enrolled was never here.
  if (machine?.last_seen_at == null || machine.away_since !== null) return;
  if (machine.removed_at !== null || machine.lost_at !== null) return;
  tx.run(updateRows('machines', { away_since: since }, { id }));
  const data = { ...nameOfMachine(tx, id), since: new Date(since).toISOString() };
  recordEvent(tx, OPERATORS, 'machine.away', `machines/${id}`, data);
}

function tellBack(tx: Tx, id: string): void {
  const known = query.updateTable('machines').set({ away_since: null }).where('id', '=', id);
  if (tx.run(known.where('away_since', 'is not', null)) === 0) return;
  recordEvent(tx, OPERATORS, 'machine.back', `machines/${id}`, nameOfMachine(tx, id));
}
