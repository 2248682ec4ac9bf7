import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { advanceUntil, files } from './advance-until.js';
import type { TestControlPlane } from './control-plane.js';
import { memoryFolder } from './memory-folder.js';

export const AUDIT_SECRET = `whsec_${Buffer.alloc(32, 'audit secret').toString('base64')}`;

/** A line, as its reader knows it. */
export interface AuditLine {
  source: string;
  id: string;
  at: string;
  actor: { kind: string; id?: string | null; email?: string };
  action: string;
  organization_id?: string;
  subject: string;
  details: Record<string, unknown>;
  cut?: boolean;
}

/** A pipe in place of standard output, which does not block, and whose reader reads when a test says so. */
export class Pipe {
  private readonly folder = memoryFolder('gpurent-pipe-');
  private text = '';
  readonly file: number;

  constructor() {
    const path = join(this.folder, 'pipe');
    execFileSync('mkfifo', [path]);
    this.file = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  }

  /** Fills it, so that nothing more can be written. Returns how many bytes that were. */
  fill(): number {
    const piece = Buffer.alloc(1_024, '\n');
    for (let size = 0; ; size += piece.length) if (!tries(() => writeSync(this.file, piece))) return size;
  }

  /** Reads what is in it: at most `most` bytes. */
  drain(most = Infinity): string {
    const piece = Buffer.alloc(1_024);
    for (let read = 0; read < most; read += piece.length) {
      let size = 0;
      if (!tries(() => (size = readSync(this.file, piece)))) break;
      this.text += piece.toString('utf8', 0, size);
    }
    return this.text;
  }

  /** The lines that were read from it up to now. */
  lines(): AuditLine[] {
    const whole = this.drain().split('\n').slice(0, -1).filter(Boolean);
    return whole.map((line) => JSON.parse(line) as AuditLine);
  }

  close(): void {
    closeSync(this.file);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Does what a pipe may not be ready for. Returns whether it was. */
export function tries(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
    throw error;
  }
}

/** Runs the workers until there are so many lines, and returns them. */
export function linesOnceThereAre(
  test: TestControlPlane,
  count: number,
  look: () => AuditLine[],
): Promise<AuditLine[]> {
  const passing = { clock: test, stepMs: 1_000, parties: [files, () => test.roundTrip()] };
  return advanceUntil(`${count} audit lines`, passing, () => {
    const lines = look();
    return lines.length >= count && lines;
  });
}
