import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SetupError } from '../../shared/coded-error.js';
import { tellReady } from '../../shared/systemd.js';

let folder: string;

/** In the place of systemd's own program. */
function putNotifier(script: string): void {
  writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, 'systemd-notify'), 0o755);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-systemd-'));
  vi.stubEnv('PATH', `${folder}:${process.env['PATH'] ?? ''}`);
  putNotifier(`echo "$@" >>${folder}/told`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

it('tells systemd where it waits, and nobody where it does not', async () => {
  await tellReady('/run/systemd/notify');
  await tellReady(undefined);
  expect(readFileSync(join(folder, 'told'), 'utf8')).toBe('--ready\n');
});

it('fails where systemd cannot be told, and would wait for ever', async () => {
  putNotifier('echo "no such socket" >&2; exit 1');
  const told = tellReady('/run/systemd/notify');
  await expect(told).rejects.toThrow(SetupError);
  await expect(told).rejects.toThrow(/^systemd cannot be told that this program is ready: no such socket$/);
});
