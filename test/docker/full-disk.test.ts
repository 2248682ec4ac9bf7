import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Journal } from '../../agent/journal/journal.js';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-full-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', folder]);
  file = join(folder, 'journal.db');
});
afterEach(() => {
  execFileSync('umount', [folder]);
  rmSync(folder, { recursive: true });
});

/** Somebody else fills the disk to the last byte. */
function fill(): void {
  for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    try {
      for (;;) appendFileSync(join(folder, 'filler'), Buffer.alloc(bytes, 1));
    } catch {
      // No room for so much at once.
    }
  }
}

/** What commands of a busy day write. */
function write(journal: Journal, from: number): void {
  for (let i = from; i < from + 500; i++) {
    journal.begin({ commandId: `c${i}`, instanceId: `i${i}`, sequence: 1 }, 'running');
    journal.setMeta('epoch', `[${i}, "${'x'.repeat(64)}"]`);
  }
}

it('the journal of a host whose disk is full goes on, also over a restart of the agent', () => {
  const first = new Journal(file);
  first.restore();
  fill();
  write(first, 0);
  expect(first.obstacle).toBe('');
  first.close();
  fill();
  const second = new Journal(file);
  expect(second.instance('i499')).toMatchObject({ desired: 'running' });
  write(second, 500);
  expect(second.obstacle).toBe('');
  second.close();
});

it('a journal without a reserve goes on in memory, and is on the disk once there is room', () => {
  const first = new Journal(file);
  write(first, 0);
  fill();
  write(first, 500);
  expect(first.obstacle).toContain('database or disk is full');
  expect(first.instance('i999')).toMatchObject({ desired: 'running' });
  expect(() => first.restore()).toThrow();
  rmSync(join(folder, 'filler'));
  first.restore();
  expect(first.obstacle).toBe('');
  first.close();
  const second = new Journal(file);
  expect(second.instances()).toHaveLength(1_000);
  second.close();
});
