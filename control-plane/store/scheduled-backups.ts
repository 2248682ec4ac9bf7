import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Timer } from '../../shared/clock.js';
import { fileTroubleOf, requireWritableFolder } from '../../shared/file-access.js';
import type { Logger } from '../../shared/logger.js';
import { MINUTE_MS } from '../../shared/time.js';
import type { DiskRoom } from './disk-room.js';
import type { Store } from './store.js';

export interface BackupPlan {
  folder: string;
  everyMs: number;
  /** The number of newest copies to keep. */
  keep: number;
}

/** How the scheduled backups stand. */
export interface BackupState extends BackupPlan {
  /** When the newest copy was made, in milliseconds since 1970 UTC; null: there is none, or the folder cannot be read. */
  newestAt: number | null;
  /** Whether the folder could be used at the last check. */
  isUsable: boolean;
  /** How long a copy has been due; Infinity if the folder cannot be used. */
  overdueMs: number;
}

const LOOK_EVERY_MS = MINUTE_MS;
/** A copy would take what the reserve has freed. */
const NO_ROOM = 'it is on the disk of the database, which is full: make room, or keep backups on another disk';
const NAME = /^gpurent-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z\.db$/;
const UNFINISHED = /^gpurent-.*\.db\.part(-journal)?$/;

/** Copies the database into a folder at an interval, a few pages at a time between other work, and keeps the newest copies. */
export class ScheduledBackups {
  private timer: Timer | undefined;
  private looking: Promise<void> = Promise.resolve();
  private stopping = false;
  private startedAt = Infinity;
  private isPrepared = false;
  /** Whether the folder could be used at the last check. */
  private isUsable = false;

  constructor(
    private readonly store: Pick<Store, 'backUp'>,
    private readonly plan: BackupPlan,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly room: Pick<DiskRoom, 'isFullFor'> = { isFullFor: () => false },
  ) {}

  /** Returns the milliseconds since a copy was due; Infinity if the folder cannot be used. */
  get overdueMs(): number {
    try {
      if (!this.isUsable) return Infinity;
      const newestAt = this.newestAt();
      const dueAt = newestAt === undefined ? this.startedAt : newestAt + this.plan.everyMs;
      return Math.max(this.clock.now() - dueAt, 0);
    } catch {
      return Infinity;
    }
  }

  /** Returns how the backups stand now. */
  state(): BackupState {
    return { ...this.plan, newestAt: this.newestKnown(), isUsable: this.isUsable, overdueMs: this.overdueMs };
  }

  private newestKnown(): number | null {
    try {
      return this.newestAt() ?? null;
    } catch {
      return null;
    }
  }

  /**
   * Starts the schedule. A folder that cannot be used stops nothing: it is logged, tried every minute, and {@link overdueMs}
   * shows it.
   */
  start(): void {
    this.startedAt = this.clock.now();
    try {
      this.prepare();
    } catch {
      // The first check logs it.
    }
    this.lookAgain(0);
  }

  /** Creates the folder only once: if it vanishes later, its disk is probably not mounted. */
  private prepare(): void {
    const { folder } = this.plan;
    this.isUsable = false;
    if (!this.isPrepared && !existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    requireWritableFolder(folder);
    // A process that ended during a copy left these.
    if (!this.isPrepared) for (const name of this.names(UNFINISHED)) rmSync(join(folder, name));
    this.isPrepared = true;
    this.isUsable = true;
  }

  /** Aborts a copy in progress and ends the schedule. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.timer?.cancel();
    await this.looking;
  }

  private lookAgain(delayMs: number): void {
    if (this.stopping) return;
    this.timer = this.clock.schedule(delayMs, () => {
      this.looking = this.look().finally(() => this.lookAgain(LOOK_EVERY_MS));
    });
  }

  private async look(): Promise<void> {
    try {
      this.prepare();
      if (this.isDue()) await this.copy();
      this.prune();
    } catch (error) {
      if (!this.stopping) this.logger.error(`no backup could be made in ${this.plan.folder}: ${fileTroubleOf(error)}`);
    }
  }

  /** Returns whether to copy now. After the clock was set back, a newest copy in the future must not delay the next one. */
  private isDue(): boolean {
    const newestAt = this.newestAt();
    return newestAt === undefined || Math.abs(this.clock.now() - newestAt) >= this.plan.everyMs;
  }

  private newestAt(): number | undefined {
    const newest = this.names(NAME).at(-1);
    return newest === undefined ? undefined : momentOf(newest);
  }

  private async copy(): Promise<void> {
    if (this.room.isFullFor(this.plan.folder)) throw new Error(NO_ROOM);
    const stamp = new Date(this.clock.now()).toISOString().replace(/[:.]/g, '-');
    const file = join(this.plan.folder, `gpurent-${stamp}.db`);
    const part = `${file}.part`;
    try {
      await this.store.backUp(part, () => this.stopping || this.room.isFullFor(this.plan.folder));
      chmodSync(part, 0o600);
      renameSync(part, file);
    } catch (error) {
      rmSync(part, { force: true });
      throw error;
    }
    this.logger.info({ file }, 'the database is copied');
  }

  private prune(): void {
    for (const name of this.names(NAME).slice(0, -this.plan.keep)) rmSync(join(this.plan.folder, name));
  }

  /** Lists file names, oldest first. */
  private names(pattern: RegExp): string[] {
    return readdirSync(this.plan.folder)
      .filter((name) => pattern.test(name))
      .sort();
  }
}

function momentOf(name: string): number {
  return Date.parse(name.replace(NAME, '$1T$2:$3:$4.$5Z'));
}
