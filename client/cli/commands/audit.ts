import type { components } from '../../api/index.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { whole } from './options.js';

type Entry = components['schemas']['AuditEntry'];

const COLUMNS: readonly Column<Entry>[] = [
  { title: 'TIME', of: ({ at }) => at.slice(0, 19).replace('T', ' ') },
  { title: 'WHO', of: ({ actor_email }) => actor_email, yields: 1 },
  { title: 'WHAT', of: ({ action }) => action },
  { title: 'ON', of: ({ subject }) => subject, yields: 2 },
  { title: 'DETAILS', of: ({ details }) => JSON.stringify(details), yields: 3 },
];

export const define: Define = (command, invocation) => {
  command
    .option('--limit <count>', 'the newest so many', whole(1, 100), 50)
    .action(async (query: { limit: number }) => {
      const { items } = await invocation.gpurent().get('/v1/operator/audit-log', { params: { query } });
      invocation.list(items, COLUMNS, 'Operators have done nothing yet.');
    });
};
