import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OpenBlock, Reader } from '../rig/guide-walk.js';

describe('who pastes blocks of the guides', () => {
  let home: string;
  let reader: Reader;
  let ended = 0;

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'gpurent-guide-'));
    const env = { ...process.env, HOME: home };
    reader = new Reader(
      {
        tell: async (script) => {
          const { status, stdout, stderr } = spawnSync('bash', ['-c', script], { env, encoding: 'utf8' });
          return { ok: status === 0, said: stdout.trim(), errors: stderr };
        },
      },
      'test',
      { NAME: 'world' },
    );
  });
  afterAll(() => rmSync(home, { recursive: true }));
  const blockOf = (text: string) => new OpenBlock(reader, 'x.md: Test', text, () => ended++);

  it('keeps variables, functions and the folder', async () => {
    await reader.paste('GREETING="hello NAME"');
    await reader.paste('greet() { echo "$GREETING, $1"; }');
    await reader.paste('mkdir deeper && cd deeper');
    expect(await reader.paste('greet you; basename "$PWD"')).toBe('hello world, you\ndeeper');
  });

  it.each(['false && true', 'false | true', 'x=$(false | cat)', 'false; true', 'nothing-of-that-name'])(
    'fails with: %s',
    (command) => expect(reader.paste(command)).rejects.toThrow(`a guide's command fails:\n${command}`),
  );

  it.each(['echo \'{"id": "..."}\'', 'echo /v1/.../x', 'echo enr_...'])('fills in what stands for it: %s', (command) =>
    expect(reader.paste(command)).rejects.toThrow('nobody says what stands for'),
  );

  it('runs a block to its end, in parts', async () => {
    const block = blockOf('echo a ID\necho b\necho c\n');
    expect(await block.upTo('echo a', { ID: '1' })).toBe('a 1');
    expect(await block.again()).toBe('a 1');
    await expect(block.upTo('echo a')).rejects.toThrow('has no further command with: echo a');
    await expect(block.rest({ ID: '1' })).rejects.toThrow('no longer has: ID');
    expect(ended).toBe(0);
    expect(await block.rest()).toBe('c');
    expect(ended).toBe(1);
  });
});
