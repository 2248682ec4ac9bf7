import { MINUTE_MS } from '../../../shared/time.js';
import { DISKS_PAUSE_AFTER_MS, isOwnSilence } from '../../domain/machines/silence.js';
import { compileOnce, query, updateRows } from '../../store/sql.js';
import { pauseDisks, settleDisksSoon } from '../metering/disks.js';
import type { Platform } from '../system/platform.js';

/** Hosts that one run pauses, or reads as heard again; more wait for the next run. */
const BATCH = 200;
const WRITTEN_EVERY_MS = MINUTE_MS;
/** Before this, a host that is not heard counts as connected. */
const UNNOTICED_MS = 30_000;
const PAUSED = 'the control plane has not heard this host for fifteen minutes; connect again to report all workloads';

/** Makes the worker that pauses the disk meters of hosts that are silent. It returns the number of hosts whose disks it has paused. */
export function silenceWatcherOf(platform: Platform): () => { paused: number } {
  const watch = new SilenceWatch(platform);
  return () => ({ paused: watch.look() });
}

interface Watched {
  /** For how long it is silent, less time in which the control plane could not hear it by its own fault. */
  silentMs: number;
  /** The same as it is in the database. */
  writtenMs: number;
}

/**
 * Measures by the monotonic clock for how long each host is silent. The database has it within a minute, and only hosts that are silent
 * are written: so it outlives the process, and time in which no control plane runs is none of it.
 */
class SilenceWatch {
  private readonly hosts = new Map<string, Watched>();
  /** Hosts whose disks were doubted, until a message or a hello shows that they were there. */
  private readonly doubted = new Set<string>();
  private lookedAt: number;
  private writtenAt = -Infinity;

  constructor(private readonly platform: Platform) {
    this.lookedAt = platform.bootedAt;
  }

  look(): number {
    const { clock, connections } = this.platform;
    const now = clock.monotonic();
    // What cannot be written now is tried again: until then, no look has taken place.
    if (now - this.writtenAt >= WRITTEN_EVERY_MS) this.writeAndRead(now);
    const sinceMs = now - this.lookedAt;
    this.lookedAt = now;
    const missing = [...this.hosts].filter(([id]) => !connections.isConnected(id));
    const isOwn = isOwnSilence({ sinceMs, hosts: this.hosts.size, missing: missing.length });
    const missingIds = new Set(missing.map(([id]) => id));
    for (const [id, host] of this.hosts) if (!missingIds.has(id)) host.silentMs = 0;
    for (const [id, host] of missing) {
      if (isOwn) this.doubt(id);
      else host.silentMs = this.silenceOf(id, host.silentMs, { now, sinceMs });
    }
    this.settleHeard();
    return this.pause(missing);
  }

  /** Returns for how long a host is silent that was silent for `before` at the last look: one that has spoken since, by its last message. */
  private silenceOf(id: string, before: number, { now, sinceMs }: { now: number; sinceMs: number }): number {
    const heardAt = this.platform.connections.heardAt(id);
    if (heardAt === undefined) return before + sinceMs;
    const isFirst = before === 0 || now - heardAt <= sinceMs;
    return isFirst ? Math.min(now - heardAt, UNNOTICED_MS + sinceMs) : before + sinceMs;
  }

  private doubt(id: string): void {
    this.platform.connections.doubtDisks(id);
    this.doubted.add(id);
  }

  /** Lets disk time be charged that was in doubt, once its host has shown that it was there. */
  private settleHeard(): void {
    const { store, connections } = this.platform;
    const heard = [...this.doubted].filter((id) => connections.disks.areKnown(id)).slice(0, BATCH);
    if (heard.length === 0) return;
    store.transact((tx) => {
      for (const id of heard) settleDisksSoon(tx, id);
    });
    for (const id of heard) this.doubted.delete(id);
  }

  private pause(missing: readonly (readonly [string, Watched])[]): number {
    const { store, connections } = this.platform;
    const silent = missing.filter(([, { silentMs }]) => silentMs >= DISKS_PAUSE_AFTER_MS).slice(0, BATCH);
    if (silent.length === 0) return 0;
    store.transact((tx) => {
      for (const [id, { silentMs }] of silent) {
        pauseDisks(tx, id, tx.now - (silentMs - DISKS_PAUSE_AFTER_MS));
        // One whose stream is still open says hello before it is metered again.
        tx.afterCommit(() => connections.close(id, PAUSED));
      }
    });
    for (const [id] of silent) {
      this.hosts.delete(id);
      this.doubted.delete(id);
    }
    return silent.length;
  }

  /** Writes for how long hosts are silent, and reads which hosts there are: new ones, and those whose disks are metered again. */
  private writeAndRead(now: number): void {
    const changed = [...this.hosts].filter(([, { silentMs, writtenMs }]) => silentMs !== writtenMs);
    const rows = this.platform.store.transact((tx) => {
      for (const [id, { silentMs }] of changed)
        tx.run(updateRows('machines', { silent_ms: Math.round(silentMs) }, { id }));
      return tx.all(watchedMachines({}));
    });
    for (const [, host] of changed) host.writtenMs = host.silentMs;
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.hosts.keys()) if (!ids.has(id)) this.forget(id);
    for (const { id, silent_ms } of rows)
      if (!this.hosts.has(id)) this.hosts.set(id, { silentMs: silent_ms, writtenMs: silent_ms });
    this.writtenAt = now;
  }

  private forget(id: string): void {
    this.hosts.delete(id);
    this.doubted.delete(id);
  }
}

const watchedMachines = compileOnce(() =>
  query
    .selectFrom('machines')
    .select(['id', 'silent_ms'])
    .where('removed_at', 'is', null)
    .where('disks_paused', '=', 0)
    // A host that has only enrolled was never here.
    .where('last_seen_at', 'is not', null),
);
