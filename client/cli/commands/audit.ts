import type { components, paths } from '../../api/index.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { whole } from './options.js';

type Entry = components['schemas']['AuditEntry'];
type Query = NonNullable<paths['/v1/operator/audit-log']['get']['parameters']['query']>;

interface Options {
  limit: number;
  by?: string;
  action?: string;
  of?: string;
}

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
    .option('--by <email>', 'only what this operator has done')
    .option('--action <action>', 'only this action, such as machine.cordon')
    .option('--of <id>', 'only what was done to the object with this id')
    .action(async ({ limit, by, action, of }: Options) => {
      // The control plane knows its actions, and refuses others.
      const query = { limit, actor_email: by, action: action as Query['action'], subject: of } as Query;
      const { items } = await invocation.gpurent().get('/v1/operator/audit-log', { params: { query } });
      invocation.list(items, COLUMNS, 'Operators have done nothing like this yet.');
    });
};
