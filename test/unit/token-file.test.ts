import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { tokenOf } from '../../agent/link/token-file.js';

const AGENT = fileURLToPath(new URL('../../dist/agent/main.js', import.meta.url));
const TOKEN = `enr_${'0'.repeat(48)}.${'a'.repeat(64)}`;
const folder = mkdtempSync(join(tmpdir(), 'gpurent-token-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(content: string): string {
  const file = join(folder, 'token');
  writeFileSync(file, content);
  return file;
}

/** Runs the program on a host that is enrolled nowhere; `--again` is refused there as soon as the token is read. */
function enroll(input: string, ...options: string[]): string {
  const line = [AGENT, 'enroll', '--control-plane', '127.0.0.1:1', '--gpus', 'simulated:1', '--again', ...options];
  const env = { GPURENT_AGENT_STATE_DIR: join(folder, 'state') };
  return spawnSync(process.execPath, line, { input, env, encoding: 'utf8' }).stderr;
}

describe('the enrollment token', () => {
  it('is what the file holds, without the end of the line', () => {
    expect(tokenOf({ tokenFile: fileWith(`${TOKEN}\r\n`) })).toBe(TOKEN);
    expect(tokenOf({ token: TOKEN })).toBe(TOKEN);
  });

  it('is refused with a file that holds something else, which is not repeated', () => {
    for (const content of ['', 'hunter2', `${TOKEN}\n${TOKEN}`, `${TOKEN} hunter2`, 'enr_']) {
      const file = fileWith(content);
      expect(() => tokenOf({ tokenFile: file })).toThrow(
        `--token-file ${file} holds no enrollment token: write only the token, which begins with enr_, into it`,
      );
    }
    expect(() => tokenOf({ tokenFile: join(folder, 'none') })).toThrow(/none cannot be read: ENOENT/);
    expect(() => tokenOf({ tokenFile: folder })).toThrow(/cannot be read: EISDIR/);
  });

  it('comes in one way', () => {
    const one = /^gpurent-agent: give the enrollment token by --token-file FILE or by --token TOKEN: one of the two\n$/;
    expect(enroll('')).toMatch(one);
    expect(enroll('', '--token', TOKEN, '--token-file', fileWith(TOKEN))).toMatch(one);
  });

  it('can come by standard input', () => {
    expect(enroll(`${TOKEN}\n`, '--token-file', '-')).toBe(
      'gpurent-agent: this host is not enrolled yet: leave out --again\n',
    );
    expect(enroll('hunter2\n', '--token-file', '-')).toMatch(
      /^gpurent-agent: --token-file - holds no enrollment token/,
    );
  });
});
