import { existsSync, statSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { MIB } from '../../shared/bytes.js';
import { DiskReserve } from '../../shared/disk-reserve.js';
import type { Logger } from '../../shared/logger.js';
import { STEP_BYTES, decideRoom } from '../domain/disk-room.js';

/**
 * Watches the disk of the database, and keeps a reserve on it. While the disk counts as full, the reserve is freed in steps, and whoever
 * asks {@link isFull} does only what ends cost or must be kept.
 */
export class DiskRoom {
  private readonly reserve: DiskReserve;
  private full = false;
  /** Whether the log has said that there is no room for the whole reserve. */
  private isLackKnown = false;

  /** `reserveBytes`: the size that the reserve is to have; 0: there is none. */
  constructor(
    private readonly database: string,
    private readonly reserveBytes: number,
    private readonly logger: Logger,
  ) {
    this.reserve = new DiskReserve(`${database}.reserve`, STEP_BYTES);
  }

  /** Whether only what ends cost or must be kept may be written. */
  get isFull(): boolean {
    return this.full;
  }

  /** Whether the disk is full, and files in this folder would take room on it. */
  isFullFor(folder: string): boolean {
    return this.full && statSync(folder).dev === statSync(dirname(this.database)).dev;
  }

  /** How much of the reserve there is. */
  get reservedBytes(): number {
    return this.reserve.size;
  }

  /** Returns how much of the disk is free for this program, from 0 to 1; null: that cannot be read. */
  freeShare(): number | null {
    const disk = this.read();
    return disk === null || disk.blocks === 0 ? null : disk.bavail / disk.blocks;
  }

  /**
   * Looks at the disk before the database is opened. Frees a step of the reserve if the disk is full: without any room, SQLite cannot
   * even open the database. Where some of the reserve is missing, the disk can have been full until the process ended: what that
   * has freed is still for what must be kept.
   */
  makeRoom(): void {
    const freeBytes = this.freeBytes();
    const reserveBytes = this.reserve.size;
    const isFull = reserveBytes < this.reserveBytes && existsSync(this.database);
    const found = decideRoom({ freeBytes, reserveBytes, wantedBytes: this.reserveBytes, isFull });
    if (!found.isFull) return;
    this.found(freeBytes);
    if (found.reserve === 'release') this.reserve.release();
  }

  /** Must be called when SQLite has found the disk full, which can be earlier than {@link look} finds it. */
  noteFull(): void {
    this.found(this.freeBytes());
    this.reserve.release();
  }

  /** Looks at the disk, and frees or takes one step of the reserve. Returns how many MiB were freed or taken. */
  look(): { freed: number; taken: number } {
    const before = this.reserve.size;
    const freeBytes = this.freeBytes();
    const { isFull, reserve } = decideRoom({
      freeBytes,
      reserveBytes: before,
      wantedBytes: this.reserveBytes,
      isFull: this.full,
    });
    if (isFull) this.found(freeBytes);
    else if (this.full) this.hasRoom();
    if (reserve === 'release') this.reserve.release();
    if (reserve === 'grow') this.reserve.growTo(Math.min(before + STEP_BYTES, this.reserveBytes));
    if (!isFull) this.tellOfReserve(reserve);
    const grown = (this.reserve.size - before) / MIB;
    return { freed: Math.max(-grown, 0), taken: Math.max(grown, 0) };
  }

  private found(freeBytes: number | null): void {
    if (this.full) return;
    this.full = true;
    const free = freeBytes === null ? 'an unknown part' : `${Math.floor(freeBytes / MIB)} MiB`;
    this.logger.error(
      `the disk of the database is full (${free} free, ${Math.ceil(this.reserve.size / MIB)} MiB in reserve): until there is room, only what ends cost or must be kept is written; make room in ${dirname(this.database)}`,
    );
  }

  private hasRoom(): void {
    this.full = false;
    this.logger.info('the disk of the database has room again: everything is written');
  }

  private tellOfReserve(happens: 'grow' | 'keep' | 'release'): void {
    const { size } = this.reserve;
    const isWhole = size >= this.reserveBytes;
    if (happens === 'grow' && isWhole) this.logger.info(`${size / MIB} MiB are in reserve on the disk of the database`);
    const isLacking = !isWhole && happens === 'keep';
    if (isLacking && !this.isLackKnown)
      this.logger.warn(
        `there is no room for the whole reserve on the disk of the database: it has ${Math.floor(size / MIB)} of ${this.reserveBytes / MIB} MiB; make room in ${dirname(this.database)}`,
      );
    this.isLackKnown = isLacking;
  }

  private freeBytes(): number | null {
    const disk = this.read();
    return disk === null ? null : disk.bavail * disk.bsize;
  }

  private read(): { blocks: number; bavail: number; bsize: number } | null {
    try {
      return statfsSync(dirname(this.database));
    } catch {
      return null;
    }
  }
}
