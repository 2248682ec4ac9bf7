import type { GpurentEvent } from '../../api/index.js';
import { findInstance } from '../instances/find.js';
import { wordsOf } from '../instances/words.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { jsonText } from '../terminal/plain-text.js';
import { whole } from './options.js';

const COLUMNS: readonly Column<GpurentEvent>[] = [
  { title: 'TIME', of: ({ time }) => time.slice(0, 19).replace('T', ' ') },
  { title: 'SUBJECT', of: ({ subject }) => subject.replace(/([0-9a-f]{8})-[0-9a-f-]{27}/, '$1'), yields: 1 },
  { title: 'TYPE', of: ({ type }) => type, yields: 2 },
  { title: 'WHAT', of: wordsOf },
];

interface Options {
  follow?: true;
  limit: number;
  type?: string;
}

export const define: Define = (command, invocation) => {
  command
    .argument('[instance]', 'only of this one: an id, its beginning, or a label')
    .option('-f, --follow', 'what happens from now on, until Ctrl-C; with --json one event a line')
    .option('--limit <count>', 'the newest so many', whole(1, 100), 20)
    .option('--type <types>', 'only of these types, separated by commas')
    .action(async (name: string | undefined, { follow, limit, type }: Options) => {
      const gpurent = invocation.gpurent();
      const { id } = name === undefined ? {} : await findInstance(gpurent, name);
      if (!follow) {
        const query = {
          limit,
          ...(id === undefined ? {} : { instance_id: id }),
          ...(type === undefined ? {} : { type }),
        };
        const { items } = await gpurent.get('/v1/events', { params: { query } });
        return invocation.list(items, COLUMNS, 'Nothing has happened.');
      }
      const { stdout, interrupted } = invocation.terminal;
      const types = type?.split(',') as GpurentEvent['type'][] | undefined;
      const options = {
        signal: interrupted,
        ...(id === undefined ? {} : { instanceId: id }),
        ...(types ? { types } : {}),
      };
      for await (const event of gpurent.events(options)) {
        if (invocation.wantsJson) stdout.write(`${jsonText(event, 0)}\n`);
        else invocation.line(COLUMNS.map(({ of }) => of(event)).join('  '));
      }
    });
};
