import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { standardOutput } from '../../control-plane/standard-output.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil, files } from '../harness/advance-until.js';
import { Pipe, tries } from '../harness/audit-out.js';
import { ManualClock } from '../harness/manual-clock.js';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));
const LINES = Array.from({ length: 300 }, (_, number) => `${number}:${'x'.repeat(900)}`);

let pipe: Pipe | undefined;
afterEach(() => {
  pipe?.close();
  pipe = undefined;
});

it('a line comes whole or not at all, so that what others write is never inside of one', async () => {
  pipe = new Pipe();
  const clock = new ManualClock();
  const { file } = pipe;
  const other = 'of another program'.padEnd(700, '.');
  const done = standardOutput(clock, file)(LINES, new AbortController().signal).then(() => true);
  let text = '';
  await advanceUntil('all lines', { clock, stepMs: 250, parties: [files] }, () => {
    // The reader takes what it likes. Another program writes then, and the pipe is full again after that.
    text = pipe?.drain(5_000) ?? '';
    tries(() => writeSync(file, `${other}\n`));
    return text.split('\n').filter((line) => line !== other).length > LINES.length;
  });
  expect(await done).toBe(true);
  const lines = text.split('\n').slice(0, -1);
  expect(lines).toContain(other);
  expect(lines.filter((line) => line !== other)).toEqual(LINES);
});

it('a write that waits for its reader ends with its signal, and leaves no timer', async () => {
  pipe = new Pipe();
  const clock = new ManualClock();
  pipe.fill();
  const controller = new AbortController();
  const written = standardOutput(clock, pipe.file)(LINES, controller.signal);
  await eventually('the wait', () => clock.waiting === 1);
  controller.abort(new Error('over'));
  await expect(written).rejects.toThrow('over');
  expect(clock.waiting).toBe(0);
});

it('an error of the reader is told', async () => {
  const closed = 999_999;
  await expect(standardOutput(new ManualClock(), closed)(LINES, new AbortController().signal)).rejects.toThrow('EBADF');
});

it('a process whose reader reads nothing goes on, and can end', async () => {
  const program = `
    import { systemClock } from '${DIST}shared/clock.js';
    import { standardOutput } from '${DIST}control-plane/standard-output.js';
    const lines = Array.from({ length: 2000 }, () => 'x'.repeat(900));
    void standardOutput(systemClock)(lines, new AbortController().signal);
    // Threads that write, if any is held: the pool has four.
    setTimeout(() => { process.stderr.write('still here'); process.exit(7); }, 300);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (part: Buffer) => (said += part.toString()));
  const [code] = (await once(child, 'exit')) as [number];
  expect(said).toBe('still here');
  expect(code).toBe(7);
});
