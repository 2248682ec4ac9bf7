import { MINUTE_MS } from '../../../shared/time.js';
import { OPERATORS } from '../../domain/event.js';
import { query, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import { nameOfMachine } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';

/** How long a host must have said the same: a host that has just connected says what keeps it from new work a moment later. */
const TOLD_AFTER_MS = MINUTE_MS;
const BATCH = 200;

/** Tells operators of connected hosts that take no new instances, such as after a failed test of their GPUs, and that do again. */
export class ObstacleEvents {
  /** The machines of which operators believe that they take nothing new; undefined before the first look. */
  private told: Set<string> | undefined;
  /** Since when a machine is otherwise than was told, in monotonic milliseconds. */
  private readonly news = new Map<string, number>();
  private readonly changed = new Set<string>();

  constructor(private readonly platform: Platform) {
    platform.connections.onChange((machineId) => this.changed.add(machineId));
  }

  /** Tells of at most 200 machines in one transaction. Returns their number. */
  tell(now: number): number {
    const { connections, store } = this.platform;
    const told = (this.told ??= this.look());
    const isNews = (id: string) =>
      connections.isConnected(id) && (connections.obstacleOf(id) !== null) !== told.has(id);
    for (const machineId of this.changed) {
      if (!isNews(machineId)) this.news.delete(machineId);
      else if (!this.news.has(machineId)) this.news.set(machineId, now);
    }
    this.changed.clear();
    const old = [...this.news].filter(([, since]) => now - since >= TOLD_AFTER_MS).slice(0, BATCH);
    if (old.length === 0) return 0;
    store.transact((tx) => {
      for (const [machineId, since] of old)
        tellOf(tx, machineId, connections.obstacleOf(machineId), tx.now - (now - since));
    });
    for (const [machineId] of old) {
      this.news.delete(machineId);
      if (!told.delete(machineId)) told.add(machineId);
    }
    return old.length;
  }

  private look(): Set<string> {
    const machines = query.selectFrom('machines').select(['id', 'refuses_since']).where('removed_at', 'is', null);
    const rows = this.platform.store.transact((tx) => tx.all(machines));
    return new Set(rows.flatMap(({ id, refuses_since }) => (refuses_since === null ? [] : [id])));
  }
}

function tellOf(tx: Tx, id: string, reason: string | null, since: number): void {
  tx.run(updateRows('machines', { refuses_since: reason === null ? null : since }, { id }));
  const [subject, machine] = [`machines/${id}`, nameOfMachine(tx, id)];
  if (reason === null) return recordEvent(tx, OPERATORS, 'machine.accepting', subject, machine);
  recordEvent(tx, OPERATORS, 'machine.refusing', subject, { ...machine, reason, since: new Date(since).toISOString() });
}
