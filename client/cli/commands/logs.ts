import { findInstance } from '../instances/find.js';
import { ProgramOutput } from '../terminal/plain-text.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE, whole } from './options.js';

const AGAIN_MS = 1_000;
/** Lines in one answer. */
const MOST = 1_000;
/** It writes nothing any more. */
const ENDED = ['stopped', 'error', 'destroyed'];

interface Options {
  follow?: true;
  tail: number;
}

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .option('-f, --follow', 'go on with what it writes, until it ends or Ctrl-C')
    .option('--tail <lines>', 'the last lines', whole(1, MOST), 200)
    .action(async (name: string, { follow, tail }: Options) => {
      const gpurent = invocation.gpurent();
      const { stdout, wait, interrupted } = invocation.terminal;
      const { id } = await findInstance(gpurent, name);
      const read = (query: { tail: number; after?: string }) =>
        gpurent.get('/v1/instances/{id}/logs', { params: { path: { id }, query } });
      const isOver = () => interrupted.aborted;
      let page = await read(follow ? { tail, after: '' } : { tail });
      if (invocation.wantsJson && !follow) return invocation.json(page);
      let output = new ProgramOutput(invocation.hasColour);
      for (;;) {
        if (page.lines_missed) {
          invocation.note('(lines were written faster than they could be read)');
          output = new ProgramOutput(invocation.hasColour);
        }
        for (const line of page.lines) stdout.write(`${output.line(line)}\n`);
        if (!follow) return;
        if (page.lines.length === 0) {
          const { status } = await gpurent.get('/v1/instances/{id}', { params: { path: { id } } });
          if (ENDED.includes(status)) return invocation.note(`(the instance is ${status})`);
        }
        // A full page has more behind it.
        if (page.lines.length < MOST) await wait(AGAIN_MS).catch(() => undefined);
        if (isOver()) return;
        page = await read({ tail: MOST, after: page.next_after ?? '' });
      }
    });
};
